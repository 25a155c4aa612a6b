"""Features in the files that the field writes: HDF5, NPZ, folders of ``.npy`` or ``.npz``, clip-retrieval's partitions.

Each reader gives the ids of the rows and, for every array, a function that reads one row; nothing is unpickled.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import read_text
from vitcapr.formats.containers import read_parquet
from vitcapr.formats.records import reading

Row = Callable[[int], np.ndarray]
_ID_NAMES = ("image_id", "caption_id", "ids", "id", "key")
_LIKE_ID = re.compile(r"(?:(?:image|img|picture|photo|caption|file|sample)_?)?(?:ids?|keys?|names?|paths?)", re.I)
_PRINTED_BYTES = re.compile(r"b'.*'|b\".*\"")
_MOST_ARRAYS = 64
"""A file of more arrays has one an image; they are not all read to look for ids."""
_PER_IMAGE = "features"
"""The name of an array that has none in its file, one entry an image."""
_OF_ALL = re.compile(r"(?:cls|patches)(?:_\d+)?|text|features|embeddings|(?:image|text)_(?:features|embeddings)")
"""Names of arrays over all images."""
_PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin")


@dataclass(frozen=True)
class ForeignFeatures:
    """Features in files of other programs.

    Attributes:
        kind: of file, for the store's attributes.
        files: what was read, in order.
        ids: of each row.
        rows: array name -> a function that reads a row.
        unused: names of arrays in the files that do not have a vector for each row.
        grid: rows and columns of patches, where the file says it; else (0, 0).
    """

    kind: str
    files: tuple[Path, ...]
    ids: list[str]
    rows: Mapping[str, Row]
    unused: Sequence[str] = ()
    grid: tuple[int, int] = (0, 0)

    def only(self, arrays: Sequence[str]) -> "ForeignFeatures":
        """Select arrays by name.

        Raises:
            UserError: one of them is not there.
        """
        for name in arrays:
            if name not in self.rows:
                raise UserError(f"no array '{name}'", where=self.files[0], remedy=f"there are {', '.join(self.rows)}")
        return replace(self, rows={name: self.rows[name] for name in arrays}, unused=())


@contextmanager
def open_foreign(source: Path, ids: Sequence[str] | None = None, of: str = "images") -> Iterator[ForeignFeatures]:
    """Open a file or folder of features.

    Args:
        ids: of the rows, where one big array comes without them.
        of: ``images`` or ``captions``: which of clip-retrieval's embeddings.

    Raises:
        UserError: it is of no known kind, has no ids or one twice, its values are pickled, or it reaches into other
            files.
    """
    if not (source.is_file() or source.is_dir()):
        raise UserError("no such file or folder", where=source)
    what, remedy = "features that can be read", "copy the file, or write it with plain arrays (numpy.save),"
    with reading(source, what, remedy), _opened(source, ids, of) as features:
        if not features.ids:
            raise UserError("no features there", where=source)
        if twice := [name for name, number in Counter(features.ids).items() if number > 1]:
            raise UserError(f"the id '{twice[0]}' is there twice", where=source, remedy="give each row its own id")
        yield features


@contextmanager
def _opened(source: Path, ids: Sequence[str] | None, of: str) -> Iterator[ForeignFeatures]:
    suffix = source.suffix.lower()
    if suffix in (".h5", ".hdf5", ".hdf"):
        with h5py.File(source, "r") as file:
            features = _by_name("h5", source, _h5_arrays(source, file), ids, of)
            grid = np.ravel(file.attrs.get("grid", ()))  # As exchange.to_h5 writes it.
            known = grid.size == 2 and grid.dtype.kind in "iu"
            yield replace(features, grid=(int(grid[0]), int(grid[1]))) if known else features
    elif suffix == ".npz":
        with np.load(source, allow_pickle=False) as archive:
            yield _by_name("npz", source, archive, ids, of)
    elif suffix == ".npy":
        if ids is None:
            raise UserError("an array alone does not say whose rows these are", where=source, remedy="give --ids")
        array = _mapped(source)
        if len(array) != len(ids):
            raise UserError(f"{len(ids)} ids for {len(array)} rows", where=source, remedy="give one id for each row")
        yield ForeignFeatures("npy", (source,), list(ids), {_PER_IMAGE: lambda row: array[row]})
    elif ids is not None:
        raise UserError("files of this kind name their rows themselves", where=source, remedy="leave --ids out")
    elif any(source.glob("*_emb/*_emb_*.npy")) or any(source.glob("*_emb_*.npy")):
        yield _clip_retrieval(source, of)
    elif source.is_dir():
        yield _folder(source)
    else:
        remedy = "see docs/moving-stores.md"
        if suffix in _PICKLES:
            load = "torch.load(FILE, weights_only=True)"
            remedy = f"a pickle can run code and is not opened: read it with {load}, write it with numpy.savez"
        raise UserError("not a file of features that is known here", where=source, remedy=remedy)


def _h5_arrays(source: Path, file: h5py.File) -> dict[str, h5py.Dataset]:
    """Return all arrays by their paths.

    HDF5 may keep values in any other file, by external storage, virtual data sets and external links; those are
    refused.
    """
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


def _by_name(kind: str, source: Path, arrays: Mapping[str, Any], ids: Sequence[str] | None, of: str) -> ForeignFeatures:
    """Read a file of named arrays: one an image, or all images in each if there are ids."""
    key = _find_ids(source, arrays) if ids is None else None
    if key is not None:
        if key == "caption_id" and of == "images":
            raise UserError("the rows are captions, by 'caption_id'", where=source, remedy="give --of captions")
        ids = _texts(arrays[key][:], f"{source}, {key}")
    if ids is None and all(map(_OF_ALL.fullmatch, arrays)):
        what = f"'{next(iter(arrays))}' does not say whose rows these are"
        raise UserError(what, where=source, remedy="give --ids, or write the ids beside it as image_id")
    if ids is None:
        return _one_each(kind, (source,), {name: partial(arrays.__getitem__, name) for name in arrays})
    # A member of an .npz cannot be mapped; each array is in memory once.
    whole = {name: arrays[name] for name in arrays if name != key and "/" not in name}
    rows = {name: array.__getitem__ for name, array in whole.items() if array.ndim > 1 and len(array) == len(ids)}
    unused = sorted(set(arrays) - set(rows) - {key})
    return ForeignFeatures(kind, (source,), list(ids), rows, unused)


def _find_ids(source: Path, arrays: Mapping[str, Any]) -> str | None:
    """Find the array that holds the ids: by its name, or the only one of texts; None if there is one array an image."""
    if key := next((name for name in _ID_NAMES if name in arrays), None):
        return key
    if len(arrays) > _MOST_ARRAYS:
        return None
    plain = {name: arrays[name] for name in arrays if "/" not in name}
    flat = {name: array for name, array in plain.items() if array.ndim and array.size == len(array)}
    texts = [name for name, array in flat.items() if array.dtype.kind in "SUO"]
    numbers = [name for name, array in flat.items() if array.dtype.kind in "iu" and _LIKE_ID.fullmatch(name)]
    named = [name for name in texts if _LIKE_ID.fullmatch(name)] or texts or numbers
    if len(named) > 1:
        what = f"'{named[0]}' or '{named[1]}' may be the ids of the rows"
        raise UserError(what, where=source, remedy="call the ids image_id, or give them with --ids")
    return named[0] if named else None


def _texts(values: Any, where: str) -> list[str]:
    """Return ids as texts, from texts, bytes or whole numbers; axes of length one do not count.

    Raises:
        UserError: they are something else.
    """
    array = np.asarray(values)
    array = array.reshape(-1) if array.size == len(array) else array
    whole = array.astype(np.int64) if array.dtype.kind == "f" and (array == np.round(array)).all() else array
    texts = [value.decode() if isinstance(value, bytes) else value for value in whole.tolist()]
    if whole.ndim != 1 or not all(isinstance(value, str | int) and value is not True for value in texts):
        what = f"ids are a text or a whole number for each row, not {array.dtype} of shape {array.shape}"
        raise UserError(what, where=where, remedy="write them as a vector of texts")
    return [text[2:-1] if _PRINTED_BYTES.fullmatch(text) else text for text in map(str, texts)]


def _folder(source: Path) -> ForeignFeatures:
    """Return a file for each image, whose id is its path below the folder, without the suffix."""
    files = {suffix: sorted(source.rglob(f"*{suffix}")) for suffix in (".npy", ".npz", *_PICKLES)}
    there = [suffix for suffix, paths in files.items() if paths]
    if len(there) != 1 or there[0] in _PICKLES:
        what = f"the folder has {' and '.join(there) or 'no .npy or .npz'} files"
        remedy = "give a folder with .npy or .npz files alone; convert pickles with torch.load(FILE, weights_only=True)"
        raise UserError(what, where=source, remedy=remedy)
    (suffix,) = there
    paths = {path.relative_to(source).as_posix().removesuffix(suffix): path for path in files[suffix]}
    kind, first = suffix[1:], files[suffix][0]
    if kind == "npy":
        return _one_each(kind, tuple(files[suffix]), {name: partial(_mapped, path) for name, path in paths.items()})
    with np.load(first, allow_pickle=False) as archive:
        names = [name for name in archive if archive[name].dtype.kind == "f" and archive[name].ndim]
        unused = [name for name in archive if name not in names]
    ids = sorted(paths)
    rows = {name: lambda row, name=name: _member(paths[ids[row]], name) for name in names}
    return ForeignFeatures(kind, tuple(files[suffix]), ids, rows, unused)


def _member(path: Path, name: str) -> np.ndarray:
    with np.load(path, allow_pickle=False) as archive:
        if name not in archive:
            raise UserError(f"no array '{name}'", where=path, remedy=f"there are {', '.join(archive)}")
        return np.asarray(archive[name])


def _clip_retrieval(source: Path, of: str) -> ForeignFeatures:
    """Read ``img_emb/img_emb_0.npy`` (or ``text_emb``) with ``metadata/metadata_0.parquet``, and further partitions."""
    stem = {"images": "img_emb", "captions": "text_emb"}[of]
    parts, tables = _partitions(source, stem, ".npy"), _partitions(source, "metadata", ".parquet")
    if not parts or (alone := parts.keys() ^ tables.keys()):
        lost = f"partition {min(alone)} has no {'metadata' if min(alone) in parts else stem}" if parts else f"no {stem}"
        raise UserError(lost, where=source, remedy="add it: each partition has both files")
    arrays, ids = [_mapped(path) for path in parts.values()], []
    for number, array in zip(parts, arrays, strict=True):
        names = _read_names(tables[number], of)
        if len(names) != len(array):
            raise UserError(f"{len(names)} rows of metadata for {len(array)} vectors", where=tables[number])
        ids += names
    ends = np.cumsum([len(array) for array in arrays])

    def row(number: int) -> np.ndarray:
        part = int(np.searchsorted(ends, number, side="right"))
        return np.asarray(arrays[part][number - (ends[part] - len(arrays[part]))])

    return ForeignFeatures(
        "clip-retrieval",
        (*parts.values(), *(tables[part] for part in parts)),
        ids,
        {"text" if of == "captions" else "cls": row},
    )


def _partitions(source: Path, stem: str, suffix: str) -> dict[int, Path]:
    """Return the file of each partition, by its number, in order."""
    paths: dict[int, Path] = {}
    for path in sorted([*source.glob(f"{stem}_*{suffix}"), *source.glob(f"{stem}/{stem}_*{suffix}")]):
        number = path.stem.removeprefix(f"{stem}_")
        if not number.isdecimal() or int(number) in paths:
            what = "is a second file of its partition" if number.isdecimal() else "has no number of a partition"
            raise UserError(f"{path.name} {what}", where=source, remedy=f"the files are {stem}_0{suffix} and so on")
        paths[int(number)] = path
    return dict(sorted(paths.items()))


def _read_names(path: Path, of: str) -> list[str]:
    """Return the ids in a table of metadata."""
    table: pd.DataFrame = read_parquet(path).to_pandas(use_threads=False)
    columns = {"captions": ("caption_id",), "images": ("image_id", "image_path", "key")}[of]
    like = [name for name in table if _LIKE_ID.fullmatch(str(name)) and "caption" not in str(name)]
    column = next((name for name in columns if name in table), like[0] if len(like) == 1 and of == "images" else None)
    if column is None:
        remedy = f"they have {', '.join(map(str, table.columns))}"
        raise UserError(f"the metadata have no column {' or '.join(columns)}", where=path, remedy=remedy)
    return _texts(table[column].to_numpy(object), f"{path}, {column}")


def _one_each(kind: str, files: tuple[Path, ...], values: Mapping[str, Callable[[], np.ndarray]]) -> ForeignFeatures:
    ids = sorted(values)
    return ForeignFeatures(kind, files, ids, {_PER_IMAGE: lambda row: np.asarray(values[ids[row]]())})


def _mapped(path: Path) -> np.ndarray:
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def read_ids(path: Path) -> list[str]:
    """Return a JSON list, or a line for each id.

    Raises:
        UserError: the file is neither, or an id is not a text.
    """
    with reading(path, "a list of ids", 'write ["a.jpg", ...], or a line each,'):
        content = read_text(path)
        values = json.loads(content) if path.suffix == ".json" else content.splitlines()
        if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
            raise ValueError("an id is not a text")
        return values
