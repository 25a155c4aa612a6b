"""The README of a published model: its scores with intervals and protocol, what it was trained on, how to use it."""

from pathlib import Path

from vitcapr.api.model_files import ModelFiles
from vitcapr.files import read_json
from vitcapr.formats.manifest import SPLITS
from vitcapr.formats.scores import read_summary
from vitcapr.formats.store_manifest import read_sealed
from vitcapr.report.score_tables import scores_page

_TASKS = {
    "captioner": ("image-to-text", "image-captioning", 'captioner.caption("photograph.jpg")[0].caption'),
    "retriever": ("feature-extraction", "image-text-retrieval", 'retriever.embed_texts("a dog runs on the beach")'),
}


def model_page(model: ModelFiles) -> str:
    """The page in Markdown."""
    attributes = read_sealed(model.stores()[0])["attributes"]
    summary = model.experiment / "summary.csv"
    scores = read_summary(summary) if summary.is_file() else None
    data = read_json(model.file("data/manifest.json", "manifest"))
    splits = data["counts"]["splits"]
    task, tag, use = _TASKS[model.kind]
    page = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    return page.format(
        task=task,
        tag=tag,
        use=use,
        name=model.folder.name,
        kind=model.kind,
        experiment=model.experiment.name,
        dataset=data["dataset"],
        counts=", ".join(f"{splits[split]} {split}" for split in SPLITS if splits.get(split)),
        backbone=attributes["backbone"] + (f", revision {attributes['revision']}" if attributes["revision"] else ""),
        weights=(attributes["weights_sha256"] or "not known")[:16],
        epoch=model.card["best_epoch"],
        architecture=", ".join(f"{key} {value}" for key, value in sorted(model.card["architecture"].items())),
        scores="Not scored." if scores is None else scores_page(scores[scores["model"] == model.folder.name]),
    )
