"""A trained model in a folder anywhere that fsspec reaches, such as ``hf://``: pull, and the copy in the cache.

A published model is a small experiment: the model, and the few files of its experiment that are needed for images and
sentences that are in no data set. ``load_captioner`` and ``load_retriever`` open it like any experiment. There is no
code in it. ``vitcapr-model.json`` names every file with its size and digest, and is written last.
"""

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import StringConstraints, model_validator

from vitcapr.api.model_files import Kind, ModelFiles
from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes
from vitcapr.formats.model import CARD, WEIGHTS
from vitcapr.progress import Reporter
from vitcapr.store.listed_files import FileList, Part, pull_list, read_list
from vitcapr.store.remote_folder import RemoteFolder

INDEX = "vitcapr-model.json"
PAGE = "README.md"
_FOLDERS = ("captioners", "retrievers", "text", "text_features", "features", "backbones", "data", "runs")


class ModelIndex(FileList):
    """Content of ``vitcapr-model.json``."""

    format: Literal["vitcapr-published-model-1"]
    model: Annotated[str, StringConstraints(pattern=rf"^(captioners|retrievers)/{Part}$")]

    @model_validator(mode="after")
    def _check_model(self) -> Self:
        if odd := [name for name in self.files if name != PAGE and name.partition("/")[0] not in _FOLDERS]:
            raise ValueError(f"it lists {odd[0]}")
        if missing := [name for file in (CARD, WEIGHTS) if (name := f"{self.model}/{file}") not in self.files]:
            raise ValueError(f"it lists no {missing[0]}")
        return self


def pull_model(place: RemoteFolder, folder: Path, report: Reporter) -> Path:
    """Copy a published model to ``folder``, and return the folder of the captioner or retriever.

    Files that are there already are not fetched again.

    Raises:
        UserError: there is no published model, or a file is not what its index says.
    """
    index, _ = read_list(place, INDEX, ModelIndex, "a published model", "push the model")
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
