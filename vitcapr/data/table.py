"""The user's own photographs and captions: rows of a table -> images, captions and splits."""

import difflib
import hashlib
import json
import posixpath
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from vitcapr.data.archive import TAR, split_tar_path
from vitcapr.data.collect import ListedCaption, ListedImage, Listing, Rejected, parse_split, put_in_split
from vitcapr.data.images import SUFFIXES, ImageSource
from vitcapr.data.table_files import METADATA, Record, read_beside, read_captions
from vitcapr.data.tables import SUFFIX as PARQUET
from vitcapr.data.tables import in_table
from vitcapr.errors import UserError

EXPECTED = "name the folder or zip of the images"
Splits = Literal["auto", "given", "hash", "seeded"]
USUAL = {
    "image": ("image", "file_name", "filename", "image_path", "path", "file"),
    "caption": ("caption", "captions", "text"),
    "language": ("language",),
    "split": ("split",),
}
_KEY = "data.table.columns"


def _resolve(column: str, given: str | None, names: Sequence[str], where: Path) -> str:
    """The name of a column in a table with the columns ``names``; empty where it has none."""
    candidates = USUAL[column] if given is None else (given,)
    if present := [name for name in candidates if name in names]:
        return present[0]
    if given is None and column not in ("image", "caption"):
        return ""
    by_lower = {name.lower(): name for name in names}
    close = [match for name in candidates for match in difflib.get_close_matches(name, by_lower, n=1)]
    guess = f"did you mean '{by_lower[close[0]]}'? " if close else ""
    raise UserError(
        f"{_KEY}.{column}: the table has no column {' or '.join(map(repr, candidates))}",
        where=where,
        remedy=f"{guess}name the column with {_KEY}.{column}; there are {', '.join(names) or 'none'}",
    )


def list_images(
    source: ImageSource,
    files: Sequence[str],
    *,
    captions: str | None,
    columns: Mapping[str, str | None],
    splits: Splits,
    validation: float,
    test: float,
    seed: int,
) -> Listing:
    """The listing of the data set, in the order of the images' paths.

    An image's id is its path below the image root; a caption's id is that path, ``#`` and its number.

    Args:
        files: the paths that exist below the image root. An image that no row names is listed without a caption.
        captions: the file of the captions; None: they are beside the images.
        columns: the names of ``image``, ``caption``, ``language`` and ``split``; None: one of the usual names. Only
            image and caption have to be there.
    """
    rejected: Rejected = []
    root, where = source.root, Path(captions) if captions else source.root
    records = read_captions(where, rejected) if captions else read_beside(root, files, rejected)
    listed, path_of, given = _list_records(records, columns, where, root, set(files), rejected)
    present = [path for path, file in path_of.items() if file]
    if not present:
        raise UserError(
            f"data.table: none of the {len(path_of)} images in {where} was found",
            where=root,
            remedy=f"the paths are relative to data.table.images; the first is '{next(iter(path_of), '')}'",
        )
    split_of = make_splits(present, given, splits, validation=validation, test=test, seed=seed)
    for path in sorted(set(files) - path_of.keys()):
        if path.lower().endswith(SUFFIXES):
            path_of[path] = path
        elif not path.endswith((TAR, PARQUET)) and PurePosixPath(path).name not in METADATA and root / path != where:
            rejected.append((path, "not an image file"))
    images = [ListedImage(path, path_of[path], split_of.get(path, "none")) for path in sorted(path_of)]
    return Listing(images, listed, rejected)


def _list_records(
    records: Sequence[Record],
    columns: Mapping[str, str | None],
    where: Path,
    root: Path,
    existing: set[str],
    rejected: Rejected,
) -> tuple[list[ListedCaption], dict[str, str | None], dict[str, str]]:
    """The captions; image -> its path, None if it is not there; image -> its split, where a row gives it."""
    present = list(dict.fromkeys(name for record in records for name in record.cells))
    names = {column: _resolve(column, given_name, present, where) for column, given_name in columns.items()}
    captions: list[ListedCaption] = []
    given: dict[str, str] = {}
    path_of: dict[str, str | None] = {}
    counted: Counter[str] = Counter()
    for record in records:
        image = record.text(names["image"])
        if not image:
            rejected.append((record.place, "row without an image"))
            continue
        path = _below(record.folder, image, root)
        if path is None:
            rejected.append((f"{record.place}: {image}", "path outside the folder of the images"))
            continue
        path_of[path] = path if _container(path) in existing else None
        if split := record.text(names["split"]) or record.split:
            place = f"{where}: {record.place}"
            put_in_split(given, path, parse_split(split, place), place)
        language = record.text(names["language"]).lower()
        for text in _captions(record.cells.get(names["caption"])):
            captions.append(ListedCaption(f"{path}#{counted[path]}", path, text, language or None))
            counted[path] += 1
    return captions, path_of, given


def _container(path: str) -> str:
    """The file that holds an image: the image itself, a tar, or a Parquet file."""
    if in_table(path):
        return path.rpartition("/")[0]
    inside = split_tar_path(path)
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


def make_splits(
    images: Collection[str],
    given: Mapping[str, str],
    how: Splits,
    *,
    validation: float,
    test: float,
    seed: int,
) -> dict[str, str]:
    """The split of each image.

    ``hash`` decides for each image alone: more images change no split. ``seeded`` meets the shares exactly, so more
    images change some splits. ``auto`` is ``given`` if the table has splits, else ``hash``.

    Args:
        images: the ids of the images that can be used.
        given: the split of each image in the table.
        validation, test: shares of the images.
    """
    if how == "given" and not given:
        remedy = "name data.table.columns.split, or use hash"
        raise UserError("data.table.splits: the table gives no splits", remedy=remedy)
    if how == "given" or (how == "auto" and given):
        split_of = {image: given.get(image, "none") for image in images}
    elif how == "seeded":
        ranked = sorted(images, key=lambda image: _rank(image, seed))
        sizes = {"test": round(test * len(ranked)), "validation": round(validation * len(ranked))}
        order = [split for split, size in sizes.items() for _ in range(size)]
        split_of = dict(zip(ranked, [*order, *["train"] * (len(ranked) - len(order))], strict=True))
    else:
        places = {image: int.from_bytes(_rank(image, seed)[:8], "big") / 2**64 for image in images}
        split_of = {
            image: "test" if place < test else "validation" if place < test + validation else "train"
            for image, place in places.items()
        }
    for split in ("train", "validation"):
        if split not in split_of.values():
            raise UserError(
                f"none of {len(images)} images is in the {split} split",
                remedy="training needs both train and validation; see data.table.splits",
            )
    return split_of


def _rank(image: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}:{image}".encode()).digest()
