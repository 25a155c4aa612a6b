"""The README of a published model: its scores with intervals and protocol, what it was trained on, how to use it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitcapr.files import read_json
from vitcapr.formats.manifest import SPLITS
from vitcapr.formats.scores import read_summary
from vitcapr.formats.store_manifest import read_sealed
from vitcapr.formats.tables import to_markdown
from vitcapr.report.score_tables import score_tables

_FRONT = """\
---
library_name: vitcapr
pipeline_tag: {task}
tags:
- {tag}
---
"""
_TASKS = {
    "captioner": ("image-to-text", "image-captioning"),
    "retriever": ("feature-extraction", "image-text-retrieval"),
}
_USE = {
    "captioner": """\
captioner = vitcapr.load_captioner("hf://OWNER/NAME")
captioner.caption("photograph.jpg")[0].caption
""",
    "retriever": """\
retriever = vitcapr.load_retriever("hf://OWNER/NAME")
retriever.embed_texts("a dog runs on the beach")
""",
}


def model_page(folder: Path, card: Mapping[str, Any], kind: str, features: Path) -> str:
    """The page in Markdown.

    Args:
        folder: ``results/<experiment>/captioners/<name>``, or that of a retriever.
        card: its ``card.json``.
        features: the sealed manifest of the features that it was trained on.
    """
    experiment = folder.parent.parent
    attributes = read_sealed(features)["attributes"]
    data = read_json(experiment / "data" / "manifest.json")
    splits = data["counts"]["splits"]
    counts = ", ".join(f"{splits[split]} {split}" for split in SPLITS if splits.get(split))
    revision = f", revision {attributes['revision']}" if attributes["revision"] else ""
    task, tag = _TASKS[kind]
    lines = [
        _FRONT.format(task=task, tag=tag),
        f"# {folder.name}\n",
        f"A {kind} of vitcapr, from the experiment `{experiment.name}`.\n",
        "| | |",
        "| --- | --- |",
        f"| data set | {data['dataset']}: images {counts} |",
        f"| backbone | {attributes['backbone']}{revision}, sha256 of its weights {attributes['weights_sha256'][:16]} |",
        f"| best epoch | {card['best_epoch']} |",
        f"| architecture | {', '.join(f'{key} {value}' for key, value in sorted(card['architecture'].items()))} |\n",
        "The folder holds weights in safetensors and JSON, no code. The backbone is not in it, unless the experiment "
        "trained it. The licences of the data set and of the backbone hold for the weights, too.\n",
        f"```python\nimport vitcapr\n\n{_USE[kind]}```\n",
        _scores(experiment, folder.name),
    ]
    return "\n".join(lines)


def _scores(experiment: Path, name: str) -> str:
    """The scores of the model with their 95 % intervals and protocols."""
    if not (experiment / "summary.csv").is_file():
        return "## Scores\n\nNot scored.\n"
    scores = read_summary(experiment / "summary.csv")
    mine = scores[scores["model"] == name]
    if mine.empty:
        return "## Scores\n\nNot scored.\n"
    protocols = "\n".join(f"- `{protocol}`" for protocol in mine["protocol"].unique())
    tables = "\n".join(to_markdown(table) for table in score_tables(mine))
    return f"## Scores\n\nWith 95 % bootstrap intervals.\n\n{tables}\nProtocols:\n\n{protocols}\n"
