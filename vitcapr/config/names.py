"""Names and paths in a configuration: names become folders, wildcards and words of commands."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from vitcapr.files import find_under

LONGEST = 100
_SOUND = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BESIDE_EXPERIMENTS = ("stores", "result_cache")


def check_name(name: str) -> str:
    """Return ``name`` if it is safe as a folder, as a wildcard and as a word of a command.

    Raises:
        ValueError: it is not safe.
    """
    if not _SOUND.fullmatch(name) or len(name) > LONGEST:
        raise ValueError(
            f"a name has 1 to {LONGEST} letters (a to z), digits, '_', '.' and '-'; it must not start with '.' or '-'"
        )
    return name


def not_reserved(*reserved: str) -> AfterValidator:
    """A validator that rejects the names ``reserved`` in upper or lower case."""

    def check(name: str) -> str:
        if name.casefold() in reserved:
            raise ValueError(f"'{name}' is a reserved name in the results folder; choose another one")
        return name

    return AfterValidator(check)


Name = Annotated[str, AfterValidator(check_name)]
ExperimentName = Annotated[Name, not_reserved(*_BESIDE_EXPERIMENTS)]
"""Name of an experiment. Its folder is in ``results/``, beside the reserved ones."""
CaptionerName = Annotated[Name, not_reserved("retrieval", "information", "languages")]
"""Name of a captioner. Its scores are in ``metrics/``, beside the reserved folders."""
ModelName = Annotated[Name, not_reserved("untrained")]
"""Name of a retriever or fine-tuned dual encoder. Its embeddings are in ``embeddings/``, beside the reserved folder."""


ADOPTED = "store:"
"""Prefix of a source that is a feature store, not a network."""


def one_spelling(path: str) -> str:
    """The path without ``~``, ``./`` and a slash at its end, and relative if it is below the working folder.

    A name on the hub stays as it is, as do ``..``, which may lead through a symbolic link.
    """
    if path.startswith(ADOPTED):
        return ADOPTED + one_spelling(path.removeprefix(ADOPTED))
    if not path or "://" in path:
        return path
    return from_here(Path(path).expanduser())


def from_here(path: Path) -> str:
    """The path from the working folder on, if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def find_backbone(source: str) -> Path:
    """The path of a model's folder: under VITCAPR_BACKBONES if it exists there, else ``source``. For a hub id it does
    not exist."""
    return find_under("VITCAPR_BACKBONES", source)


def checkpoint_files(source: str | None) -> Iterator[tuple[str, Path]]:
    """The local folder of a checkpoint under the key ``source``; nothing for a hub id, whose revision counts."""
    if source is not None and (folder := find_backbone(source)).is_dir():
        yield "source", folder


UserPath = Annotated[str, AfterValidator(one_spelling)]
"""The path of a file or folder of the user, or a name on the hub."""
