"""Named arrays in one ``.npz`` file, or one array in a ``.npy`` file: whole or absent, and never unpickled."""

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.files import atomic_path

_DAMAGE = (
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
)
"""What NumPy raises at a file that is damaged or of another format."""


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
    except _DAMAGE as error:
        raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
    for name, kind in kinds.items():
        if not np.issubdtype(arrays[name].dtype, kind):
            reason = f"{name} is of type {arrays[name].dtype}, not {kind.__name__}"
            raise UserError(f"not {what}: {reason}", where=path, remedy=f"{remedy} again")
    return arrays


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write one array, as a ``.npy`` file."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, array, allow_pickle=False)


def read_array(path: Path, kind: type, what: str, remedy: str) -> NDArray[Any]:
    """The array of a ``.npy`` file; the arguments are those of :func:`read_arrays`.

    Raises:
        UserError: the file is missing, damaged, holds objects, or the array is of another type.
    """
    try:
        with path.open("rb") as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except _DAMAGE as error:
        raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
    if not np.issubdtype(array.dtype, kind):
        raise UserError(f"not {what}: type {array.dtype}, not {kind.__name__}", where=path, remedy=f"{remedy} again")
    return array
