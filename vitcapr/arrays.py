"""Named arrays in one ``.npz`` file: whole or absent, and never unpickled."""

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.files import atomic_path


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """The same arrays give the same bytes."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def read_arrays(path: Path, names: Iterable[str], what: str, remedy: str) -> dict[str, NDArray[Any]]:
    """The arrays of these names.

    Args:
        what: that the file should be, as in "a table of ranks".
        remedy: how to make it, as in "run the embed stage".

    Raises:
        UserError: the file is missing, damaged, holds objects, or lacks an array.
    """
    try:
        with np.load(path, allow_pickle=False) as content:
            return {name: content[name] for name in names}
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except (OSError, KeyError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
