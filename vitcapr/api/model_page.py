"""The README of a published model: its scores with intervals and protocol, what it was trained on, how to use it."""

from vitcapr.api.model_files import ModelFiles
from vitcapr.files import read_json
from vitcapr.formats.manifest import SPLITS
from vitcapr.formats.scores import read_summary
from vitcapr.formats.store_manifest import read_sealed
from vitcapr.formats.tables import to_markdown
from vitcapr.report.score_tables import score_tables

_PAGE = """\
---
library_name: vitcapr
pipeline_tag: {task}
tags:
- {tag}
---

# {name}

A {kind} of vitcapr, from the experiment `{experiment}`.

| | |
| --- | --- |
| data set | {dataset}: images {counts} |
| backbone | {backbone}, sha256 of its weights {weights} |
| best epoch | {epoch} |
| architecture | {architecture} |

The folder holds weights in safetensors and JSON, no code. The backbone is not in it, unless the experiment trained \
it. The licences of the data set and of the backbone hold for the weights, too.

```python
import vitcapr

{kind} = vitcapr.load_{kind}("hf://OWNER/NAME")
{use}
```

## Scores

{scores}
"""
_TASKS = {
    "captioner": ("image-to-text", "image-captioning", 'captioner.caption("photograph.jpg")[0].caption'),
    "retriever": ("feature-extraction", "image-text-retrieval", 'retriever.embed_texts("a dog runs on the beach")'),
}


def model_page(model: ModelFiles) -> str:
    """The page in Markdown."""
    attributes = read_sealed(model.stores(None)[0])["attributes"]
    data = read_json(model.file(None, "data/manifest.json", "--manifest"))
    splits = data["counts"]["splits"]
    task, tag, use = _TASKS[model.kind]
    return _PAGE.format(
        task=task,
        tag=tag,
        use=use,
        name=model.folder.name,
        kind=model.kind,
        experiment=model.experiment.name,
        dataset=data["dataset"],
        counts=", ".join(f"{splits[split]} {split}" for split in SPLITS if splits.get(split)),
        backbone=attributes["backbone"] + (f", revision {attributes['revision']}" if attributes["revision"] else ""),
        weights=attributes["weights_sha256"][:16],
        epoch=model.card["best_epoch"],
        architecture=", ".join(f"{key} {value}" for key, value in sorted(model.card["architecture"].items())),
        scores=_scores(model),
    )


def _scores(model: ModelFiles) -> str:
    """The scores of the model with their 95 % intervals and protocols."""
    summary = model.experiment / "summary.csv"
    if not summary.is_file():
        return "Not scored."
    scores = read_summary(summary)
    scores = scores[scores["model"] == model.folder.name]
    if scores.empty:
        return "Not scored."
    protocols = "\n".join(f"- `{protocol}`" for protocol in scores["protocol"].unique())
    tables = "\n".join(to_markdown(table) for table in score_tables(scores))
    return f"With 95 % bootstrap intervals.\n\n{tables}\nProtocols:\n\n{protocols}"
