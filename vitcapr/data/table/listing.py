"""The images and captions of a user's table."""

import json
import posixpath
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from vitcapr.data import tars
from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.data.images import SUFFIXES
from vitcapr.data.table.reading import METADATA, Rejected
from vitcapr.data.table.record import Columns, Record
from vitcapr.data.table.splits import Splits, make_splits, split_named
from vitcapr.data.tables import SUFFIX as PARQUET
from vitcapr.data.tables import in_table
from vitcapr.errors import UserError


def list_table(
    records: Sequence[Record],
    columns: Columns,
    *,
    where: Path,
    root: Path,
    files: Collection[str],
    splits: Splits,
    validation: float,
    test: float,
    seed: int,
    rejected: Rejected,
) -> Listing:
    """The listing of the data set, in the order of the images' paths.

    An image's id is its path below the image root; a caption's id is that path, ``#`` and its number.

    Args:
        where: the file or folder of the captions, for the error messages.
        root: the folder or zip of the images.
        files: the paths that exist below it. An image that no row names is listed without a caption.
        rejected: (item, reason) of rows that could not be read; the rows that cannot be listed are added.

    Raises:
        UserError: a column is missing, a split is unknown, an image is in two splits, or a split is empty.
    """
    names = columns.found(records, where)
    assert names.image is not None
    assert names.caption is not None
    existing = set(files)
    captions: list[ListedCaption] = []
    given: dict[str, str] = {}
    path_of: dict[str, str | None] = {}
    counted: Counter[str] = Counter()
    for record in records:
        image = record.text(names.image)
        if not image:
            rejected.append((record.place, "row without an image"))
            continue
        path = _below(record.folder, image, root)
        if path is None:
            rejected.append((f"{record.place}: {image}", "path outside the folder of the images"))
            continue
        path_of[path] = path if _container(path) in existing else None
        _give(given, path, record.text(names.split) or record.split, f"{where}: {record.place}")
        language = record.text(names.language).lower()
        for text in _captions(record.cells.get(names.caption)):
            captions.append(ListedCaption(f"{path}#{counted[path]}", path, text, language or None))
            counted[path] += 1
    there = [path for path, found in path_of.items() if found]
    if not there:
        raise UserError(
            f"data.table: none of the {len(path_of)} images in {where} was found",
            where=root,
            remedy=f"the paths are relative to data.table.images; the first is '{next(iter(path_of), '')}'",
        )
    split_of = make_splits(there, given, splits, validation=validation, test=test, seed=seed)
    for path in sorted(existing - path_of.keys()):
        if path.lower().endswith(SUFFIXES):
            path_of[path] = path
        elif (
            not path.endswith((tars.SUFFIX, PARQUET))
            and PurePosixPath(path).name not in METADATA
            and root / path != where
        ):
            rejected.append((path, "not an image file"))
    images = [ListedImage(path, path_of[path], split_of.get(path, "none")) for path in sorted(path_of)]
    return Listing(images, captions, rejected)


def _give(given: dict[str, str], path: str, split: str | None, where: str) -> None:
    """Raises:
    UserError: the split is unknown, or another row puts the image into another one.
    """
    if not split:
        return
    named = split_named(split, where)
    if given.setdefault(path, named) != named:
        raise UserError(
            f"image '{path}' is in the {given[path]} split and in the {named} split",
            where=where,
            remedy="an image may be in one split only",
        )


def _container(path: str) -> str:
    """The file that holds an image: the image itself, a tar, or a Parquet file."""
    if in_table(path):
        return path.rpartition("/")[0]
    inside = tars.split_path(path)
    return path if inside is None else inside[0]


def _captions(cell: Any) -> list[str]:
    """One caption, or a list of captions; in CSV and TSV a list is written as JSON."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = json.loads(cell)
        except ValueError:
            return [cell]
    if isinstance(cell, list):
        return ["" if text is None else str(text) for text in cell] or [""]
    return ["" if cell is None else str(cell)]


def _below(folder: str, image: str, root: Path) -> str | None:
    """The path below the image root, normalised; None if it leads outside."""
    written = image.replace("\\", "/")
    if written.startswith("/"):
        within = Path(posixpath.normpath(written))
        base = root.absolute()
        return within.relative_to(base).as_posix() if within.is_relative_to(base) else None
    path = posixpath.normpath(folder + written)
    return None if path == ".." or path.startswith("../") else path
