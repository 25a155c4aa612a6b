"""Features that other programs computed, in HDF5, NPZ or ``.npy``, as a sealed store that says so.

A file gives the ids of the rows and, for every array, a function that reads one row; nothing is unpickled.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import h5py
import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import canonical_json, read_text, sha256_bytes, sha256_file
from vitcapr.formats.identity import match_images
from vitcapr.formats.records import reading
from vitcapr.formats.store_manifest import FORMAT
from vitcapr.store.layout import ArrayLayout
from vitcapr.store.seal import write_sealed
from vitcapr.store.writer import StoreWriter, claimed, fingerprint_of, store_folder

Row = Callable[[int], np.ndarray]
ID_NAMES = ("image_id", "caption_id", "ids", "id", "key")
_PER_IMAGE = "features"
"""The name of an array that has none in its file, one entry an image."""
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin")
_OURS = re.compile(r"(patches|cls)(_[1-9][0-9]*)?|text")
"""The names of our arrays; a number is that of a hidden layer."""
_CHUNK_OF_GRIDS, _CHUNK_OF_VECTORS = 64, 1024


@dataclass(frozen=True)
class ForeignFeatures:
    """Attributes:
    file: what was read.
    ids: of each row.
    rows: array name -> a function that reads a row.
    unused: names of arrays in the file that do not have a vector for each row.
    """

    file: Path
    ids: list[str]
    rows: Mapping[str, Row]
    unused: Sequence[str] = ()

    def only(self, arrays: Sequence[str]) -> "ForeignFeatures":
        """Raises:
        UserError: one of them is not there.
        """
        for name in arrays:
            if name not in self.rows:
                raise UserError(f"no array '{name}'", where=self.file, remedy=f"there are {', '.join(self.rows)}")
        return replace(self, rows={name: self.rows[name] for name in arrays}, unused=())


@contextmanager
def open_foreign(source: Path, ids: Sequence[str] | None = None) -> Iterator[ForeignFeatures]:
    """Open a file of features.

    Args:
        ids: of the rows, where one big array comes without them.

    Raises:
        UserError: it is of no known kind, has no ids or one twice, its values are pickled, or it reaches into other
            files.
    """
    if not source.is_file():
        raise UserError("no such file", where=source)
    what, remedy = "features that can be read", "copy the file, or write it with plain arrays (numpy.save),"
    with reading(source, what, remedy), _opened(source, ids) as features:
        if not features.ids:
            raise UserError("no features there", where=source)
        if twice := [name for name, number in Counter(features.ids).items() if number > 1]:
            raise UserError(f"the id '{twice[0]}' is there twice", where=source, remedy="give each row its own id")
        yield features


@contextmanager
def _opened(source: Path, ids: Sequence[str] | None) -> Iterator[ForeignFeatures]:
    suffix = source.suffix.lower()
    if suffix in (".h5", ".hdf5", ".hdf"):
        with h5py.File(source, "r") as file:
            yield _by_name(source, _h5_arrays(source, file), ids)
    elif suffix == ".npz":
        with np.load(source, allow_pickle=False) as archive:
            yield _by_name(source, archive, ids)
    elif suffix == ".npy":
        if ids is None:
            raise UserError("an array alone does not say whose rows these are", where=source, remedy="give --ids")
        array = np.asarray(np.load(source, mmap_mode="r", allow_pickle=False))
        if len(array) != len(ids):
            raise UserError(f"{len(ids)} ids for {len(array)} rows", where=source, remedy="give one id for each row")
        yield ForeignFeatures(source, list(ids), {_PER_IMAGE: lambda row: array[row]})
    else:
        remedy = "write an .npz file: numpy.savez(FILE, ids=..., cls=...)"
        if suffix in _PICKLES:
            load = "torch.load(FILE, weights_only=True)"
            remedy = f"a pickle can run code and is not opened: read it with {load}, write it with numpy.savez"
        raise UserError("not a file of features that is known here", where=source, remedy=remedy)


def _h5_arrays(source: Path, file: h5py.File) -> dict[str, h5py.Dataset]:
    """All arrays by their paths. HDF5 may keep values in any other file, by external storage, virtual data sets and
    external links; those are refused."""
    arrays = {}

    def visit(name: str, link: Any) -> str | None:
        item: Any = file[name] if isinstance(link, h5py.HardLink) else None
        if isinstance(item, h5py.Dataset):
            arrays[name] = item
            return name if item.external or item.is_virtual else None
        return name if isinstance(link, h5py.ExternalLink) else None

    if outside := file.visititems_links(visit):  # It stops at the first name that is returned.
        remedy = "copy the values into one file (h5repack)"
        raise UserError(f"'{outside}' lies in another file, which is not opened", where=source, remedy=remedy)
    return arrays


def _by_name(source: Path, arrays: Mapping[str, Any], ids: Sequence[str] | None) -> ForeignFeatures:
    """Of a file of named arrays: one an image, or all images in each, where there are ids."""
    key = next((name for name in ID_NAMES if name in arrays), None)
    if ids is None and key is not None:
        ids = [value.decode() if isinstance(value, bytes) else str(value) for value in arrays[key][:]]
    if ids is None:
        names = sorted(arrays)
        return ForeignFeatures(source, names, {_PER_IMAGE: lambda row: np.asarray(arrays[names[row]][()])})
    # A member of an .npz cannot be mapped; each array is in memory once.
    whole = {name: arrays[name] for name in arrays if name != key and "/" not in name}
    rows = {name: array.__getitem__ for name, array in whole.items() if array.ndim > 1 and len(array) == len(ids)}
    unused = sorted(set(arrays) - set(rows) - set(ID_NAMES))
    return ForeignFeatures(source, list(ids), rows, unused)


def read_ids(path: Path) -> list[str]:
    """A line for each id.

    Raises:
        UserError: an id is empty, or the file is no text.
    """
    with reading(path, "a list of ids", "write a line for each id,"):
        ids = read_text(path).splitlines()
        if not all(ids):
            raise ValueError("an id is empty")
        return ids


def import_features(
    source: ForeignFeatures,
    stores: Path,
    name: str,
    *,
    ids: Sequence[str] | None = None,
    identity: str = "image_id",
    grid: tuple[int, int] | None = None,
    advance: Callable[[int], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Write ``source`` into a store under ``stores``, its seal beside it.

    The attribute ``imported`` names everything that decides the rows: the digest of the files, their arrays, and the
    digest of their ids with the order of the rows. What computed the numbers is not known here, so there is no digest
    of weights.

    Args:
        name: name of the backbone in the attributes.
        ids: those of the data set, in row order; None keeps the order of the source.
        grid: rows and columns of patches, where the source has them in one axis; without it they have no place.
        advance: receives the number of rows written.
        say: receives a line about rows and arrays that are not imported.

    Returns:
        The path of the sealed manifest.
    """
    order = range(len(source.ids)) if ids is None else _order(source, ids)
    ids = list(source.ids if ids is None else ids)
    unused = sorted(set(range(len(source.ids))) - set(order))
    if unused:
        say(f"{len(unused)} of {len(source.ids)} rows are not in the data set, '{source.ids[unused[0]]}' first")
    if source.unused:
        say(f"not imported, without a vector for each row: {', '.join(source.unused)}")
    names, arrays, shapes, grid = _arrays(source, order[0], grid or (0, 0), identity)
    chunk = _CHUNK_OF_GRIDS if any(name.startswith("patches") for name in arrays) else _CHUNK_OF_VECTORS
    axis = identity.removesuffix("_id")
    layouts = {
        array: ArrayLayout.for_rows(axis, (len(ids), *shape), chunk, dtype) for array, (shape, dtype) in shapes.items()
    }
    origin: dict[str, Any] = {
        "backbone": name,
        "revision": None,
        "weights_sha256": None,
        "dtype": "unknown",
        "store_dtype": "/".join(sorted({layout.dtype for layout in layouts.values()})),
        "imported": {
            "file_sha256": sha256_file(source.file),
            "arrays": names,
            "rows_sha256": sha256_bytes(canonical_json(source.ids).encode() + np.array(order, "<i8").tobytes()),
        },
        f"{axis}s_sha256": sha256_bytes(canonical_json(ids).encode("utf-8")),
    }
    if grid != (0, 0):
        origin["grid"] = list(grid)
    layout_facts = {array: [list(layout.shape), layout.dtype] for array, layout in layouts.items()}
    fingerprint = fingerprint_of({**origin, "arrays": layout_facts, "chunk": chunk, "format": FORMAT})
    writer = StoreWriter(store_folder(stores, fingerprint), layouts)
    with claimed(writer.folder, writer.chunks, say):
        writer.begin({**origin, "fingerprint": fingerprint})
        for index in writer.chunks:
            rows = range(index * chunk, min((index + 1) * chunk, len(ids)))
            if writer.checksums(index) is None:
                writer.write(
                    index, {array: _chunk(arrays[array], layouts[array], order, rows, ids) for array in arrays}
                )
            advance(len(rows))
    sealed = writer.folder / "manifest.json"
    write_sealed(writer, [ids], identity, sealed)
    return sealed


def _order(source: ForeignFeatures, ids: Sequence[str]) -> list[int]:
    """The row of ``source`` for each id."""
    known = {identifier: row for row, identifier in enumerate(source.ids)}
    exact = {identifier: known[identifier] for identifier in ids if identifier in known}
    rows = exact or match_images(ids, source.ids, source.file)
    missing = [name for name in ids if name not in rows or not _in_one_folder(name, source.ids[rows[name]])]
    if missing:
        remedy = f"its ids are like '{source.ids[0]}'"
        what = f"{len(missing)} of {len(ids)} ids of the data set have no features, '{missing[0]}' first"
        raise UserError(what, where=source.file, remedy=remedy)
    return [rows[identifier] for identifier in ids]


def _in_one_folder(one: str, other: str) -> bool:
    """Whether the folders of one path end those of the other: ``dogs/1.jpg`` is no image of ``cats``."""
    folders = [[part for part in PurePosixPath(path).parent.parts if part != "/"] for path in (one, other)]
    return all(first == second for first, second in zip(*map(reversed, folders), strict=False))


def _arrays(
    source: ForeignFeatures, first_row: int, grid: tuple[int, int], identity: str
) -> tuple[dict[str, str], dict[str, Row], dict[str, tuple[tuple[int, ...], str]], tuple[int, int]]:
    """Our name -> the name in the source, how a row is read, and its shape and dtype; and the grid of patches."""
    names: dict[str, str] = {}
    arrays: dict[str, Row] = {}
    shapes: dict[str, tuple[tuple[int, ...], str]] = {}
    where = source.file
    for name, row in source.rows.items():
        first = row(first_row)
        if first.dtype.kind != "f" or first.ndim not in (1, 2, 3):
            raise UserError(f"'{name}' is {first.dtype} of shape {first.shape}, not features", where=where)
        vectors = "text" if identity == "caption_id" else "cls"
        ours = name if _OURS.fullmatch(name) else {1: vectors}.get(first.ndim, "patches")
        if ours in arrays:
            raise UserError(f"'{name}' is a second array of {ours}", where=where, remedy="choose one with --array")
        shape = first.shape
        if first.ndim == 3:
            grid, shape = (first.shape[0], first.shape[1]), (first.shape[0] * first.shape[1], first.shape[2])
        if ours.startswith("patches") and grid != (0, 0) and grid[0] * grid[1] != shape[0]:
            raise UserError(f"{shape[0]} patches are not {grid[0]} x {grid[1]}", where=where, remedy="correct --grid")
        names[ours], arrays[ours] = name, row
        shapes[ours] = (tuple(shape), "float16" if first.dtype.itemsize == 2 else "float32")
    if not arrays:
        raise UserError("no array has a row for each id", where=where, remedy="give the ids with --ids")
    return names, arrays, shapes, grid


def _chunk(row: Row, layout: ArrayLayout, order: Sequence[int], rows: range, ids: Sequence[str]) -> np.ndarray:
    """Rows of the store as a whole chunk, filled up with zeros."""
    chunk = np.zeros((layout.chunk, *layout.shape[1:]), layout.dtype)
    for place, number in enumerate(rows):
        values = np.asarray(row(order[number]))
        if values.size != chunk[place].size or values.shape[-1] != layout.shape[-1]:
            what = f"the features of '{ids[number]}' are of shape {values.shape}, those before of {layout.shape[1:]}"
            raise UserError(what, remedy="every image has to have as many vectors")
        chunk[place] = values.reshape(layout.shape[1:])
        if not np.isfinite(chunk[place]).all():
            raise UserError(f"the features of '{ids[number]}' are not finite")
    return chunk
