"""A store in the files that other programs read, written chunk by chunk.

``advance`` receives the number of rows after each piece written.
"""

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, canonical_json
from vitcapr.store.reader import FeatureArray, FeatureStore

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
_ROWS_IN_SHARD = 1000
_ROWS_IN_PARTITION = 1 << 20

Advance = Callable[[int], None]


def to_h5(store: FeatureStore, path: Path, advance: Advance = lambda _: None) -> None:
    """A data set for each array (``patches``, ``cls``, or ``text``) and one for the ids (UTF-8 strings); attributes on
    the root, nested ones as JSON."""
    with atomic_path(path) as temporary, h5py.File(temporary, "w") as file:
        for key, value in store.attributes.items():
            file.attrs[key] = _attribute(value)
        file.create_dataset(store.identity, data=store.ids, dtype=h5py.string_dtype())
        for name, array in store.items():
            data = file.create_dataset(name, array.shape, array.dtype)
            for start, block in _blocks(array):
                data[start : start + len(block)] = block
                advance(len(block))


def to_npz(store: FeatureStore, path: Path, advance: Advance = lambda _: None) -> None:
    """The arrays, the ids (unicode) and ``attributes`` (JSON text); nothing is pickled."""
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        ids, attributes = np.array(store.ids, dtype=np.str_), np.array(canonical_json(store.attributes))
        for name, values in {store.identity: ids, "attributes": attributes}.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _FIRST_DAY), _npy(values))
        for name, array in store.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _FIRST_DAY), "w", force_zip64=True) as member:
                _write_npy(member, array, 0, len(array), advance)


def to_webdataset(store: FeatureStore, folder: Path, advance: Advance = lambda _: None) -> None:
    """Tar shards of a thousand rows: ``000000007.patches.npy``, ``000000007.cls.npy`` and an id, ``000000007.json``."""
    _refuse_more(folder, "*.tar", -(-len(store.ids) // _ROWS_IN_SHARD))
    for shard, start in enumerate(range(0, len(store.ids), _ROWS_IN_SHARD)):
        rows = range(start, min(start + _ROWS_IN_SHARD, len(store.ids)))
        with atomic_path(folder / f"{shard:06d}.tar") as temporary, tarfile.open(temporary, "w") as archive:
            for row in rows:
                files = {f"{name}.npy": _npy(array[row]) for name, array in store.items()}
                files["json"] = canonical_json({store.identity: store.ids[row]}).encode()
                for name, content in files.items():
                    member = tarfile.TarInfo(f"{row:09d}.{name}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
                advance(len(store))


def to_clip_retrieval(store: FeatureStore, folder: Path, advance: Advance = lambda _: None) -> None:
    """``img_emb/img_emb_0.npy`` (or ``text_emb``) and ``metadata/metadata_0.parquet``: vectors, a million a partition.

    Raises:
        UserError: the store has no vectors, only patches; or more partitions lie there than these would be.
    """
    name = "cls" if store.identity == "image_id" else "text"
    if name not in store:
        raise UserError(f"clip-retrieval keeps vectors, and the store has no '{name}'", where=store.manifest_path)
    array, stem = store[name], "img_emb" if name == "cls" else "text_emb"
    _refuse_more(folder / stem, f"{stem}_*.npy", -(-len(array) // _ROWS_IN_PARTITION))
    for part, start in enumerate(range(0, len(array), _ROWS_IN_PARTITION)):
        stop = min(start + _ROWS_IN_PARTITION, len(array))
        with atomic_path(folder / stem / f"{stem}_{part}.npy") as temporary, temporary.open("wb") as stream:
            _write_npy(stream, array, start, stop, advance)
        with atomic_path(folder / "metadata" / f"metadata_{part}.parquet") as temporary:
            pd.DataFrame({store.identity: store.ids[start:stop]}).to_parquet(temporary)


def _refuse_more(folder: Path, pattern: str, files: int) -> None:
    """Whoever reads the folder would take what an earlier, larger store left in it for rows of this one."""
    there = sum(1 for _ in folder.glob(pattern))
    if there > files:
        what = f"{there} files like {pattern} lie there, and this store makes {files}"
        raise UserError(what, where=folder, remedy="export to a folder of its own")


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _write_npy(stream: IO[bytes], array: FeatureArray, start: int, stop: int, advance: Advance) -> None:
    header: dict[str, Any] = {
        "descr": array.dtype.str,
        "fortran_order": False,
        "shape": (stop - start, *array.shape[1:]),
    }
    np.lib.format.write_array_header_2_0(stream, header)
    for _, block in _blocks(array, start, stop):
        stream.write(block.data)
        advance(len(block))


def _blocks(array: FeatureArray, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
    stop = len(array) if stop is None else stop
    for first in range(start, stop, array.chunk):
        yield first, array[first : min(first + array.chunk, stop)]


def _attribute(value: object) -> object:
    """HDF5 attributes hold numbers, strings and vectors of numbers."""
    if value is None:
        return ""
    plain = isinstance(value, (str, int, float)) or (
        isinstance(value, list) and all(isinstance(part, (int, float)) for part in value)
    )
    return value if plain else canonical_json(value)
