"""A trained model that is published: its files, without names of persons and machines, and its page.

:mod:`vitcapr.api.published_model` describes the folder that is written.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vitcapr.api.model_files import ModelFiles, decoding_runs
from vitcapr.api.published_model import INDEX, PAGE, ModelIndex
from vitcapr.config.base import from_here
from vitcapr.config.features import TRAINED
from vitcapr.files import read_json, sha256_bytes, write_json, write_text
from vitcapr.formats.kinds import BACKBONE_FILES
from vitcapr.formats.model import CARD, WEIGHTS
from vitcapr.formats.store_manifest import read_sealed
from vitcapr.loader import parts
from vitcapr.progress import Reporter
from vitcapr.store.listed_files import list_files, push_list
from vitcapr.store.remote_folder import RemoteFolder


def push_model(folder: Path, place: RemoteFolder, report: Reporter) -> str:
    """Publish the captioner or retriever in ``folder``, and return the digest of the index of its files.

    Raises:
        UserError: the folder holds no model, or a file of its experiment is missing.
    """
    model = ModelFiles.open(folder.resolve())
    if part := _part(model):
        report.line(f"{part} is code and is not published; the page names it")
    with tempfile.TemporaryDirectory() as scratch:
        paths = {path.relative_to(model.experiment).as_posix(): path for path in _unchanged(model)}
        paths |= {path.relative_to(scratch).as_posix(): path for path in _written(model, Path(scratch))}
        name = model.folder.relative_to(model.experiment).as_posix()
        index = ModelIndex(format="vitcapr-published-model-1", model=name, files=list_files(paths))
        return sha256_bytes(push_list(place, INDEX, index, paths, report))


def _unchanged(model: ModelFiles) -> Iterator[Path]:
    """Yield the files that are published as they are."""
    yield from (model.folder / CARD, model.folder / WEIGHTS)
    stores = model.stores()
    yield from stores
    yield model.vocabulary
    if any(read_sealed(path)["attributes"]["backbone"] == TRAINED for path in stores):
        yield from (model.experiment / "backbones" / TRAINED / name for name in BACKBONE_FILES)
    if features := model.text_features:
        yield features


def _written(model: ModelFiles, scratch: Path) -> Iterator[Path]:
    """Yield the published files and the page, written to ``scratch`` without names of persons and machines."""
    contents: dict[Path, Any] = {}
    if model.kind == "captioner":
        for record in (run.path for run in decoding_runs(model.folder)):
            run = read_json(record)
            contents[record] = {**run, "made": {**run["made"], "user": "", "host": "", "platform": ""}}
    else:
        manifest = model.file("data/manifest.json", "manifest")
        contents[manifest] = {**read_json(manifest), "image_root": "."}
    for path, content in contents.items():
        target = scratch / path.relative_to(model.experiment)
        write_json(target, content)
        yield target
    write_text(scratch / PAGE, model_page(model))
    yield scratch / PAGE


_TASKS = {
    "captioner": ("image-to-text", "image-captioning", 'captioner.caption("photograph.jpg")[0].caption'),
    "retriever": ("feature-extraction", "image-text-retrieval", 'retriever.embed_texts("a dog runs on the beach")'),
}


def _part(model: ModelFiles) -> str:
    """Return the file of another extension that defines the captioner, from the folder of the study on; else empty."""
    part = parts("CAPTIONER").get(getattr(model.model, "architecture", ""))
    return "" if part is None or part.is_packaged else from_here(part.path)


def read_page(folder: Path) -> str:
    """Return the page of the model in ``folder``; of a published model or its folder, the page that came with it."""
    pages = (above / PAGE for above in (folder, folder.resolve().parent.parent))
    page = next(filter(Path.is_file, pages), None)
    return model_page(ModelFiles.open(folder)) if page is None else page.read_text(encoding="utf-8")


def model_page(model: ModelFiles) -> str:
    """Return the README of a published model: scores with intervals and protocol, data, use."""
    from vitcapr.formats.manifest import SPLITS
    from vitcapr.formats.scores import read_summary  # pandas loads for a mistake in a path otherwise
    from vitcapr.report.score_tables import scores_page

    attributes = read_sealed(model.stores()[0])["attributes"]
    summary = model.experiment / "summary.csv"
    scores = read_summary(summary) if summary.is_file() else None
    data = read_json(model.file("data/manifest.json", "manifest"))
    splits = data["counts"]["splits"]
    task, tag, use = _TASKS[model.kind]
    page = Path(__file__).with_name("model_page.md").read_text(encoding="utf-8")
    return page.format(
        task=task,
        code=f" The code of the network, `{part}` of the study, is not in it." if (part := _part(model)) else "",
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
