"""Features that other programs computed, as a sealed store that says so."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.extensions.exchange.foreign_files import ForeignFeatures, Row
from vitcapr.extensions.exchange.odd_rows import OddRows
from vitcapr.files import canonical_json, sha256_bytes, sha256_file
from vitcapr.formats.identity import in_one_folder, match_images
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.store_manifest import FORMAT
from vitcapr.store.content import WITHOUT, check_features
from vitcapr.store.layout import ArrayLayout
from vitcapr.store.sealing import write_sealed
from vitcapr.store.writer import StoreWriter, claimed, fingerprint_of, store_folder

_OURS = re.compile(r"(patches|cls)(_[1-9][0-9]*)?|text")
"""The names of our arrays; a number is that of a hidden layer."""
_CHUNK_OF_GRIDS, _CHUNK_OF_VECTORS = 64, 1024


def import_features(
    source: ForeignFeatures,
    stores: Path,
    name: str,
    *,
    data: Manifest | None,
    identity: str,
    grid: tuple[int, int],
    content_check: bool = True,
    advance: Callable[[int], object],
    say: Callable[[str], None],
) -> Path:
    """Write ``source`` into a store under ``stores``, its seal beside it.

    The attribute ``imported`` names everything that decides the rows: the digest of the files, their arrays, and the
    digest of their ids with the order of the rows. The network that computed the numbers is not known, so there is no
    digest of weights.

    Args:
        name: name of the backbone in the attributes.
        data: the data set whose order the rows get, and whose photographs or captions they have to fit; None: neither.
        identity: ``image_id`` or ``caption_id``.
        grid: rows and columns of patches, where the source has them in one axis; with (0, 0) those that its file says.
        content_check: False is an answer of the user, which the attributes keep: the rows are right, whatever their
            content says.
        advance: receives the number of rows after each chunk.
        say: receives a line about rows and arrays that are not imported, about rows that cannot be, and on whether the
            content fits.

    Raises:
        UserError: the rows have no ids of the data set, another shape, a number that is not finite, or a content that
            does not belong to the photographs or captions.

    Returns:
        The path of the sealed manifest.
    """
    names = _names(data, identity) if data is not None else []
    order = _order(source, names) if names else range(len(source.ids))
    ids = list(names[0] if names else source.ids)
    unused = sorted(set(range(len(source.ids))) - set(order))
    if unused:
        say(f"{len(unused)} of {len(source.ids)} rows are not in the data set, '{source.ids[unused[0]]}' first")
    if source.unused:
        say(f"not imported, without a vector for each row: {', '.join(source.unused)}")
    if source.grid != (0, 0) and grid not in ((0, 0), source.grid):
        what = f"the file says a grid of {source.grid[0]} x {source.grid[1]}, not {grid[0]} x {grid[1]}"
        raise UserError(what, where=source.files[0], remedy="leave out --grid")
    grid = source.grid if grid == (0, 0) else grid
    arrays, shapes, grid = _arrays(source, order[0], grid, identity)
    for array, (shape, _) in shapes.items():
        if len(shape) == 2 and grid == (0, 0) and shape[0] > 4 and math.isqrt(shape[0] - 1) ** 2 == shape[0] - 1:
            side = math.isqrt(shape[0] - 1)
            say(f"'{array}': {shape[0]} tokens are {side} x {side} and one more, such as CLS; with it there is no grid")
    if data is not None and content_check:
        rows = {array: ForeignRows(source.rows[name], order, ids, shapes[array][0]) for array, name in arrays.items()}
        check_features(rows, identity, grid, data, say, source.files[0])
    elif not content_check:
        say(WITHOUT)
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
            "kind": source.kind,
            "files_sha256": sha256_bytes("\n".join(map(sha256_file, source.files)).encode()),
            "arrays": arrays,
            "rows_sha256": sha256_bytes(canonical_json(source.ids).encode() + np.array(order, "<i8").tobytes()),
        },
        f"{axis}s_sha256": sha256_bytes(canonical_json(ids).encode("utf-8")),
    }
    if not content_check:
        origin["imported"]["content_check"] = False
    if grid != (0, 0):
        origin["grid"] = list(grid)
    layout_facts = {array: [list(layout.shape), layout.dtype] for array, layout in layouts.items()}
    fingerprint = fingerprint_of({**origin, "arrays": layout_facts, "chunk": chunk, "format": FORMAT})
    writer = StoreWriter(store_folder(stores, fingerprint), layouts)
    odd = {array: OddRows(array) for array in arrays}
    with claimed(writer.folder, writer.chunks, say):
        writer.begin({**origin, "fingerprint": fingerprint})
        for index in writer.chunks:
            part = np.arange(index * chunk, min((index + 1) * chunk, len(ids)))
            chunks = {}
            for array, name in arrays.items():
                layout = layouts[array]
                chunks[array] = np.zeros((chunk, *layout.shape[1:]), layout.dtype)
                values = ForeignRows(source.rows[name], order, ids, layout.shape[1:])[part]
                odd[array].look(values.astype(layout.dtype), [ids[row] for row in part])
                chunks[array][: len(part)] = values
            if writer.checksums(index) is None and not any(rows.infinite for rows in odd.values()):
                writer.write(index, chunks)
            advance(len(part))
    for rows_of_array in odd.values():
        for line in rows_of_array.lines():
            say(line)
    sealed = writer.folder / "manifest.json"
    write_sealed(writer, [ids], identity, sealed)
    return sealed


def _names(data: Manifest, identity: str) -> list[list[str]]:
    """Return the ids of the data set in row order, and the paths of images."""
    table = data.image_table if identity == "image_id" else data.caption_table
    return [table.column(column).tolist() for column in (identity, *(["path"] if identity == "image_id" else []))]


def _order(source: ForeignFeatures, names: Sequence[Sequence[str]]) -> list[int]:
    """Find the row of ``source`` for each image of the data set."""
    rows = match_images(names, [source.ids], source.files[0])
    missing = [
        place
        for place, row in enumerate(rows)
        if row is None or not any(in_one_folder(one[place], source.ids[row]) for one in names)
    ]
    if missing:
        remedy = f"its ids are like '{source.ids[0]}'"
        if source.kind in ("h5", "npz"):
            remedy += ", from an array of texts such as image_id, or else the names of its arrays; or give --ids"
        what = f"{len(missing)} of {len(rows)} ids of the data set have no features, '{names[0][missing[0]]}' first"
        raise UserError(what, where=source.files[0], remedy=remedy)
    return [row for row in rows if row is not None]


def _arrays(
    source: ForeignFeatures, first_row: int, grid: tuple[int, int], identity: str
) -> tuple[dict[str, str], dict[str, tuple[tuple[int, ...], str]], tuple[int, int]]:
    """Our name -> the name in the source; the shape of a row and its dtype; and the grid of patches."""
    names: dict[str, str] = {}
    shapes: dict[str, tuple[tuple[int, ...], str]] = {}
    where = source.files[0]
    for name, row in source.rows.items():
        first = _without_batch(row(first_row))
        if first.ndim > 1 and first.size == max(first.shape) and not _OURS.fullmatch(name):
            first = first.reshape(-1)  # A batch of one picture, or a single token, is a vector.
        if first.dtype.kind != "f" or first.ndim not in (1, 2, 3):
            raise UserError(f"'{name}' is {first.dtype} of shape {first.shape}, not features", where=where)
        vectors = "text" if identity == "caption_id" else "cls"
        ours = name if _OURS.fullmatch(name) else {1: vectors}.get(first.ndim, "patches")
        if ours in names:
            raise UserError(f"'{name}' is a second array of {ours}", where=where, remedy="choose one with --array")
        shape = first.shape
        if first.ndim == 3 and first.shape[0] > first.shape[2] and grid != first.shape[:2]:
            high, wide, width = first.shape
            if grid != (wide, width):
                what = (
                    f"'{name}' of shape {high} x {wide} x {width} has its channels first, or a grid of {high} x {wide}"
                )
                remedy = f"give --grid {wide}x{width} for {high} channels, or --grid {high}x{wide} for {width}"
                raise UserError(what, where=where, remedy=remedy)
            shape = (wide * width, high)
        elif first.ndim == 3 and first.shape[1] >= first.shape[2] and grid != first.shape[:2]:
            what = f"'{name}' of shape {' x '.join(map(str, first.shape))} has no more channels than columns"
            remedy = f"write the channels last, or give --grid {first.shape[0]}x{first.shape[1]}"
            raise UserError(what, where=where, remedy=remedy)
        elif (
            first.ndim == 2
            and first.shape[0] > first.shape[1] > 8
            and math.isqrt(first.shape[1]) ** 2 == first.shape[1]
        ):
            side, (places, width) = math.isqrt(first.shape[1]), first.shape
            if grid[0] * grid[1] not in (places, width):
                what = f"'{name}' of shape {places} x {width} is {width} places of {places} channels, or the reverse"
                remedy = f"give --grid {side}x{side} for {width} places, or the grid of {places} places"
                raise UserError(what, where=where, remedy=remedy)
            shape = (width, places) if grid[0] * grid[1] == width else shape
        elif first.ndim == 3:
            grid, shape = (first.shape[0], first.shape[1]), (first.shape[0] * first.shape[1], first.shape[2])
        if ours.startswith("patches") and grid != (0, 0) and grid[0] * grid[1] != shape[0]:
            raise UserError(f"{shape[0]} patches are not {grid[0]} x {grid[1]}", where=where, remedy="correct --grid")
        names[ours] = name
        shapes[ours] = (tuple(shape), "float16" if first.dtype.itemsize == 2 else "float32")
    if not names:
        raise UserError("no array has a row for each id", where=where, remedy="give the ids with --ids")
    return names, shapes, grid


def _without_batch(row: np.ndarray) -> np.ndarray:
    """Return the features of one image without the axes of a batch of one."""
    while row.ndim > 2 and row.shape[0] == 1:
        row = row[0]
    return row


@dataclass(frozen=True)
class ForeignRows:
    """Rows of a file in the order of the data set, read when they are asked for by an array of numbers."""

    row: Row
    order: Sequence[int]
    ids: Sequence[str]
    row_shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.order), *self.row_shape)

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, numbers: np.ndarray) -> np.ndarray:
        """Return the rows: (n, ...) of the file's dtype.

        Raises:
            UserError: a row has another shape.
        """
        values = []
        for number in numbers.tolist():
            row = _without_batch(np.asarray(self.row(self.order[number])))
            if row.ndim == 2 and row.shape != self.row_shape == row.shape[::-1]:
                row = row.T
            if row.ndim == 3 and row.shape[2] != self.row_shape[-1] == row.shape[0]:
                row = np.moveaxis(row, 0, -1)
            size, width = int(np.prod(self.row_shape)), self.row_shape[-1]
            if row.size != size or (row.shape[-1] != width and max(row.shape) != size):
                what = (
                    f"the features of '{self.ids[number]}' are of shape {row.shape}, those before of {self.row_shape}"
                )
                raise UserError(what, remedy="every image has to have as many vectors")
            values.append(row.reshape(self.row_shape))
        return np.stack(values)
