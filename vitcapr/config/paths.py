"""One spelling for each path of a configuration, so that another spelling of the same path re-runs nothing."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

ADOPTED = "store:"
"""Prefix of a source that is a feature store, not a network."""


def one_spelling(path: str) -> str:
    """The path without ``~``, ``./``, ``a/../`` and a slash at its end, and relative if it is below the working folder.

    A name on the hub stays as it is, as does a path in which ``..`` leads through a symbolic link.
    """
    if path.startswith(ADOPTED):
        return ADOPTED + one_spelling(path.removeprefix(ADOPTED))
    if not path or "://" in path:
        return path
    expanded = Path(path).expanduser()
    short = os.path.normpath(expanded)
    if ".." in expanded.parts and any(_lead_apart(root, expanded, short) for root in _roots()):
        return str(expanded)
    here = Path.cwd()
    return str(Path(short).relative_to(here)) if Path(short).is_relative_to(here) else short


def _roots() -> list[str]:
    """The folders that a relative path may be looked up in."""
    return [os.environ[name] for name in ("VITCAPR_DATA", "VITCAPR_BACKBONES") if os.environ.get(name)] + [""]


def _lead_apart(root: str, path: Path, short: str) -> bool:
    return Path(root, path).resolve() != Path(root, short).resolve()


UserPath = Annotated[str, AfterValidator(one_spelling)]
"""The path of a file or folder of the user, or a name on the hub."""
