"""Named arrays in one ``.npz`` file: whole or absent, and never unpickled."""

import zipfile
import zlib
from collections.abc import Mapping
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


def read_arrays(path: Path, kinds: Mapping[str, type], what: str, remedy: str) -> dict[str, NDArray[Any]]:
    """The arrays of these names.

    Args:
        kinds: the NumPy type of each array by its name; an abstract one, such as ``np.integer``, admits all below it.
        what: that the file should be, as in "a table of ranks".
        remedy: how to make it, as in "run the embed stage".

    Raises:
        UserError: the file is missing, damaged, holds objects, or lacks an array, or one is of another type.
    """
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in kinds}
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except (
        OSError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        EOFError,
        NotImplementedError,
        SyntaxError,
        MemoryError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
    for name, kind in kinds.items():
        if not np.issubdtype(arrays[name].dtype, kind):
            reason = f"{name} is of type {arrays[name].dtype}, not {kind.__name__}"
            raise UserError(f"not {what}: {reason}", where=path, remedy=f"{remedy} again")
    return arrays
