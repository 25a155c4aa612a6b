"""A trained model in a folder anywhere that fsspec reaches, such as ``hf://``: push, pull and the copy in the cache.

A published model is a small experiment: the model, and the few files of its experiment that are needed for images and
sentences that are in no data set. ``load_captioner`` and ``load_retriever`` open it like any experiment. There is no
code in it. ``vitcapr-model.json`` names every file with its size and digest, and is written last.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from vitcapr.api.model_files import ModelFiles, decoding_records
from vitcapr.config.features import TRAINED
from vitcapr.errors import UserError
from vitcapr.files import read_file, read_json, readable_json, sha256_bytes, sha256_file, write_bytes
from vitcapr.formats.kinds import BACKBONE_FILES
from vitcapr.formats.model import CARD, WEIGHTS, read_card
from vitcapr.formats.store_manifest import read_sealed
from vitcapr.store.remote_folder import RemoteFolder

INDEX = "vitcapr-model.json"
PAGE = "README.md"
FORMAT: Final = "vitcapr-published-model-1"
KINDS = {"captioners": "captioner", "retrievers": "retriever"}
_MOST_OF_THE_INDEX = 2**20
_NAME = (
    r"^(README\.md|(captioners|retrievers|text|text_features|features|backbones|data|runs)"
    r"(/[A-Za-z0-9_][A-Za-z0-9_.-]*){1,5})$"
)

Advance = Callable[[str, int], None]
"""Receives the name and the bytes of each file that is done."""


class _File(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    size: int = Field(ge=0, lt=2**40)
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Index(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    format: Literal["vitcapr-published-model-1"]
    model: Annotated[str, StringConstraints(pattern=r"^(captioners|retrievers)/[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
    files: dict[Annotated[str, StringConstraints(pattern=_NAME)], _File]


def push_model(folder: Path, place: RemoteFolder, advance: Advance) -> None:
    """Publish the captioner or retriever in ``folder``. Files that are there already are not sent again."""
    contents = published_files(folder)
    files = {name: _File(size=len(content), sha256=sha256_bytes(content)) for name, content in contents.items()}
    known: dict[str, _File] = {}
    with suppress(UserError):  # Nothing is published there yet.
        known = _read_index(place).files
    for name, content in contents.items():
        if known.get(name) != files[name]:
            place.write(name, content)
        advance(name, len(content))
    model = f"{folder.resolve().parent.name}/{folder.resolve().name}"
    place.write(INDEX, _Index(format=FORMAT, model=model, files=files).model_dump_json(indent=2).encode("utf-8"))


def pull_model(place: RemoteFolder, folder: Path, advance: Advance) -> Path:
    """Copy a published model to ``folder``, and return the folder of the captioner or retriever.

    Files that are there already are not fetched again.

    Raises:
        UserError: there is no published model, or a file is not what its index says.
    """
    index = _read_index(place)
    for name, facts in index.files.items():
        path = folder / name
        if not path.is_file() or sha256_file(path) != facts.sha256:
            content = place.read(name, facts.size)
            if sha256_bytes(content) != facts.sha256:
                raise UserError(f"'{name}' is not what {INDEX} says", where=place.url, remedy="push the model again")
            write_bytes(path, content)
        advance(name, facts.size)
    return folder / index.model


def cached_model(url: str) -> Path:
    """The folder of the published model at ``url``, in the cache of this machine. What is missing is fetched.

    The cache is ``~/.cache/vitcapr/models``, or lies below ``XDG_CACHE_HOME``.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "vitcapr" / "models" / sha256_bytes(url.encode("utf-8"))[:16]
    return pull_model(RemoteFolder(url), folder, lambda _name, _size: None)


def find_model(given: str | Path | None, kind: str) -> ModelFiles:
    """The given model, or the only one in the given experiment or in ``results``.

    Args:
        given: the folder of a model or of an experiment, or the URL of a published model; None for any experiment.
        kind: ``captioner`` or ``retriever``.

    Raises:
        UserError: the folder holds no model or several; the message lists them.
    """
    path = cached_model(given) if isinstance(given, str) and "://" in given else Path(given or "results")
    if given is None:
        cards = sorted(path.glob(f"*/{kind}s/*/{CARD}"))
    elif (path / f"{kind}s").is_dir():
        cards = sorted(path.glob(f"{kind}s/*/{CARD}"))
    elif (path / CARD).is_file():
        cards = [path / CARD]
    else:
        there = sorted(card.parent.name for card in path.parent.glob(f"*/{CARD}"))
        remedy = f"there are {', '.join(there)}" if there else f"give the folder results/EXPERIMENT/{kind}s/NAME"
        raise UserError(f"no trained {kind} here", where=path, remedy=remedy)
    if len(cards) == 1:
        return ModelFiles(cards[0].parent, read_card(cards[0]), kind)
    remedy = f"name one with --{kind}" + (f": {', '.join(str(card.parent) for card in cards)}" if cards else "")
    raise UserError(f"{len(cards) or 'no'} trained {kind}{'s' if cards else ''}", where=path, remedy=remedy)


def published_files(folder: Path) -> dict[str, bytes]:
    """The content of every file of a published model, by its name.

    Raises:
        UserError: the folder holds no model, or a file of its experiment is missing.
    """
    folder = folder.resolve()
    kind = KINDS.get(folder.parent.name)
    if kind is None:
        remedy = "give results/EXPERIMENT/captioners/NAME or results/EXPERIMENT/retrievers/NAME"
        raise UserError("not the folder of a captioner or a retriever", where=folder, remedy=remedy)
    card = read_card(folder / CARD)
    model = ModelFiles(folder, card, kind)
    experiment = model.experiment
    settings = card["settings"][kind]
    stores = model.stores(None)
    paths = [folder / CARD, folder / WEIGHTS, model.vocabulary(None), *stores]
    if any(read_sealed(path)["attributes"]["backbone"] == TRAINED for path in stores):
        paths += [experiment / "backbones" / TRAINED / name for name in BACKBONE_FILES]
    if kind == "retriever" and settings["text"].get("encoder"):
        place = f"text_features/{settings['text']['encoder']}/manifest.json"
        paths.append(model.file(None, place, "--text-features"))
    files = {path.relative_to(experiment).as_posix(): read_file(path) for path in paths}
    if kind == "captioner":
        files |= {path.relative_to(experiment).as_posix(): _anonymous(path) for path in decoding_records(folder)}
    else:
        manifest = model.file(None, "data/manifest.json", "--manifest")
        files["data/manifest.json"] = _json({**read_json(manifest), "image_root": "."})
    from vitcapr.api.model_page import model_page  # pandas loads for a mistake in a path otherwise

    files[PAGE] = model_page(folder, card, kind, stores[0]).encode("utf-8")
    return files


def _anonymous(record: Path) -> bytes:
    """A run record without the names of the person and of the machine."""
    content = read_json(record)
    return _json({**content, "made": {**content["made"], "user": "", "host": "", "platform": ""}})


def _json(content: Mapping[str, Any]) -> bytes:
    return readable_json(content).encode("utf-8")


def _read_index(place: RemoteFolder) -> _Index:
    try:
        return _Index.model_validate_json(place.read(INDEX, _MOST_OF_THE_INDEX))
    except FileNotFoundError as error:
        raise UserError("no published model there", where=place.url, remedy=f"it would have {INDEX}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        what = f"{INDEX} is damaged: {'.'.join(map(str, first['loc']))[:80]}: {first['msg']}"
        raise UserError(what, where=place.url, remedy="push the model again") from error
