"""A trained model in a folder anywhere that fsspec reaches, such as ``hf://``: push, pull and the copy in the cache.

A published model is a small experiment: the model, and the few files of its experiment that are needed for images and
sentences that are in no data set. ``load_captioner`` and ``load_retriever`` open it like any experiment. There is no
code in it. ``vitcapr-model.json`` names every file with its size and digest, and is written last.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import StringConstraints, model_validator

from vitcapr.api.model_files import Kind, ModelFiles, decoding_runs
from vitcapr.config.base import from_here
from vitcapr.config.features import TRAINED
from vitcapr.errors import UserError
from vitcapr.files import read_json, sha256_bytes, write_json, write_text
from vitcapr.formats.kinds import BACKBONE_FILES
from vitcapr.formats.model import CARD, WEIGHTS
from vitcapr.formats.store_manifest import read_sealed
from vitcapr.loader import parts
from vitcapr.progress import Reporter
from vitcapr.store.listed_files import FileList, Part, list_files, pull_list, push_list, read_list
from vitcapr.store.remote_folder import RemoteFolder

INDEX = "vitcapr-model.json"
PAGE = "README.md"
FORMAT: Final = "vitcapr-published-model-1"
_FOLDERS = ("captioners", "retrievers", "text", "text_features", "features", "backbones", "data", "runs")


class _Index(FileList):
    format: Literal["vitcapr-published-model-1"]
    model: Annotated[str, StringConstraints(pattern=rf"^(captioners|retrievers)/{Part}$")]

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        if odd := [name for name in self.files if name != PAGE and name.partition("/")[0] not in _FOLDERS]:
            raise ValueError(f"it lists {odd[0]}")
        if missing := [name for file in (CARD, WEIGHTS) if (name := f"{self.model}/{file}") not in self.files]:
            raise ValueError(f"it lists no {missing[0]}")
        return self


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
        index = _Index(format=FORMAT, model=name, files=list_files(paths))
        return sha256_bytes(push_list(place, INDEX, index, paths, report))


def pull_model(place: RemoteFolder, folder: Path, report: Reporter) -> Path:
    """Copy a published model to ``folder``, and return the folder of the captioner or retriever.

    Files that are there already are not fetched again.

    Raises:
        UserError: there is no published model, or a file is not what its index says.
    """
    index, _ = read_list(place, INDEX, _Index, "a published model", "push the model")
    pull_list(place, index, folder, report)
    return folder / index.model


def find_model(given: str | Path | None, kind: Kind) -> ModelFiles:
    """Return the given model, or the only one in the given experiment or in ``results``.

    Args:
        given: the folder of a model or of an experiment, or the URL of a published model; None for any experiment. What
            is missing of a published model is fetched to ``~/.cache/vitcapr/models``, or below ``XDG_CACHE_HOME``.
        kind: ``captioner`` or ``retriever``.

    Raises:
        UserError: the folder holds no such model or several; the message lists them.
    """
    path = Path(given or "results")
    if isinstance(given, str) and "://" in given:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = cache / "vitcapr" / "models" / sha256_bytes(given.encode("utf-8"))[:16]
        path = pull_model(RemoteFolder(given), folder, Reporter())
    if given is not None and (path / CARD).is_file():
        return ModelFiles.open(path, kind)
    cards = sorted(path.glob(f"*/{kind}s/*/{CARD}" if given is None else f"{kind}s/*/{CARD}"))
    if len(cards) == 1:
        return ModelFiles.open(cards[0].parent, kind)
    others = cards or sorted(path.parent.glob(f"*/{CARD}"))
    remedy = f"give the folder results/EXPERIMENT/{kind}s/NAME"
    if others:
        remedy = f"give one of {', '.join(str(card.parent) for card in others)}"
    raise UserError(f"{len(cards) or 'no'} trained {kind}{'s' if cards else ''} here", where=path, remedy=remedy)


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
