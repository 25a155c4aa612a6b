"""A store as one HDF5 or NPZ file, written chunk by chunk, for programs that read those."""

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np

from vitcapr.features.store import FeatureArray, FeatureStore
from vitcapr.files import atomic_path, canonical_json

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)


def to_h5(store: FeatureStore, path: Path, advance: Callable[[int], None] = lambda _: None) -> None:
    """A data set for each array and one for the ids (UTF-8 strings); attributes on the root, nested ones as JSON.

    So ``patches``, ``cls`` and ``image_id``, or ``text`` and ``caption_id``.

    Args:
        advance: told the number of rows after each piece written.

    Raises:
        UserError: the disk is full.
    """
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
        for key, value in store.attributes.items():
            file.attrs[key] = _attribute(value)
        file.create_dataset(store.identity, data=store.ids, dtype=h5py.string_dtype())
        for name, array in store.items():
            data = file.create_dataset(name, array.shape, array.dtype)
            for start, block in _blocks(array):
                data[start : start + len(block)] = block
                advance(len(block))


def to_npz(store: FeatureStore, path: Path, advance: Callable[[int], None] = lambda _: None) -> None:
    """The arrays, the ids (unicode) and ``attributes`` (JSON text); nothing is pickled.

    So ``patches``, ``cls`` and ``image_id``, or ``text`` and ``caption_id``.

    Args:
        advance: told the number of rows after each piece written.

    Raises:
        UserError: the disk is full.
    """
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        small = {
            store.identity: np.array(store.ids, dtype=np.str_),
            "attributes": np.array(canonical_json(store.attributes)),
        }
        for name, values in small.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _FIRST_DAY), "w") as member:
                np.lib.format.write_array(member, values, allow_pickle=False)
        for name, array in store.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _FIRST_DAY), "w", force_zip64=True) as member:
                header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
                np.lib.format.write_array_header_2_0(member, header)
                for _, block in _blocks(array):
                    member.write(block.data)
                    advance(len(block))


def _blocks(array: FeatureArray) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, len(array), array.chunk):
        yield start, array[start : start + array.chunk]


def _attribute(value: object) -> object:
    """HDF5 attributes hold numbers, strings and vectors of numbers."""
    if value is None:
        return ""
    plain = isinstance(value, (str, int, float)) or (
        isinstance(value, list) and all(isinstance(part, (int, float)) for part in value)
    )
    return value if plain else canonical_json(value)
