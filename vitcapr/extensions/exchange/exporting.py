"""A store in the files of other programs. ``advance`` receives the number of rows after each piece written."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, canonical_json
from vitcapr.store.reader import FeatureStore

_ROWS_IN_PARTITION = 1 << 20

Advance = Callable[[int], object]


def to_h5(store: FeatureStore, path: Path, advance: Advance) -> None:
    """Write a data set for each array and one for the ids (UTF-8); attributes on the root, nested ones as JSON.

    The arrays are ``patches`` and ``cls``, or ``text``.

    Raises:
        UserError: the disk has too little room; HDF5 would crash.
    """
    size = sum(math.prod(array.shape) * array.dtype.itemsize for array in store.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(path.parent).free) < size:
        raise UserError(f"{size:,} bytes are to be written, and {free:,} are free", where=path, remedy="make room")
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
        for key, value in store.attributes.items():
            file.attrs[key] = _attribute(value)
        file.create_dataset(store.identity, data=store.ids, dtype=h5py.string_dtype())
        for name, array in store.items():
            data = file.create_dataset(name, array.shape, array.dtype)
            for start in range(0, len(array), array.chunk):
                block = array[start : start + array.chunk]
                data[start : start + len(block)] = block
                advance(len(block))


def to_clip_retrieval(store: FeatureStore, folder: Path, advance: Advance) -> None:
    """``img_emb/img_emb_0.npy`` (or ``text_emb``) and ``metadata/metadata_0.parquet``: vectors, a million a partition.

    Raises:
        UserError: the store has no vectors, only patches; or vectors of another store lie there.
    """
    name = "cls" if store.identity == "image_id" else "text"
    if name not in store:
        raise UserError(f"clip-retrieval keeps vectors, and the store has no '{name}'", where=store.manifest_path)
    array, stem = store[name], "img_emb" if name == "cls" else "text_emb"
    paths = [folder / stem / f"{stem}_{part}.npy" for part in range(-(-len(array) // _ROWS_IN_PARTITION))]
    if left := sorted(set(folder.glob("*_emb/*.npy")) - set(paths)):
        what = f"{left[0]} is of another store, and its metadata would be written over"
        raise UserError(what, where=folder, remedy="export to a folder of its own")
    for part, path in enumerate(paths):
        start, stop = part * _ROWS_IN_PARTITION, min((part + 1) * _ROWS_IN_PARTITION, len(array))
        metadata = folder / "metadata" / f"metadata_{part}.parquet"
        metadata.unlink(missing_ok=True)  # The ids of other vectors must not stay beside these.
        with atomic_path(path) as temporary, temporary.open("wb") as stream:
            shape = (stop - start, *array.shape[1:])
            header: dict[str, Any] = {"descr": array.dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(stream, header)
            for first in range(start, stop, array.chunk):
                block = array[first : min(first + array.chunk, stop)]
                stream.write(block.data)
                advance(len(block))
        with atomic_path(metadata) as temporary:
            pd.DataFrame({store.identity: store.ids[start:stop]}).to_parquet(temporary)


def _attribute(value: object) -> object:
    """Return a value as HDF5 keeps it in an attribute: a number, a string or a vector of numbers."""
    if value is None:
        return ""
    plain = isinstance(value, (str, int, float)) or (
        isinstance(value, list) and all(isinstance(part, (int, float)) for part in value)
    )
    return value if plain else canonical_json(value)
