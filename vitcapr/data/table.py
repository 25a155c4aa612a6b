"""The user's own photographs and captions: rows of a table -> images, captions and splits."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.data import tables, tars
from vitcapr.data.coco import list_coco
from vitcapr.data.collect import ListedImage, Listing, one_line, take_rows
from vitcapr.data.images import SUFFIXES, ImageSource
from vitcapr.data.rows import Columns, Row, captions_of, read_rows, read_webdataset
from vitcapr.data.splits import Splits, make_splits, parse_split, put_in_split, splits_in
from vitcapr.data.tables import in_table
from vitcapr.data.tars import OddRow, Rejected, split_tar_path
from vitcapr.errors import UserError
from vitcapr.files import open_text
from vitcapr.formats.containers import text_columns

EXPECTED = "name the folder or zip of the images"
CAPTIONS_KEY, IMAGES_KEY = "data.table.captions", "data.table.images"
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
USUAL = {
    "image": ("image", "file_name", "filename", "image_path", "path", "file"),
    "caption": ("caption", "captions", "text"),
    "language": ("language",),
    "split": ("split",),
}


def list_images(
    source: ImageSource,
    files: Sequence[str],
    *,
    captions: str | Sequence[str] | None,
    columns: Mapping[str, str | None],
    splits: Splits,
    validation: float,
    test: float,
    seed: int,
) -> Listing:
    """The listing of the data set, in the order of the images' paths.

    An image's id is its path below the image root, and a caption's that path, ``#`` and its number; in COCO's form both
    have the ids of the file.

    Args:
        files: the paths that exist below the image root. An image that no row names is listed without a caption.
        captions: the file of the captions, or several; None: they are beside the images.
        columns: the names of ``image``, ``caption``, ``language`` and ``split``; None: one of the usual names. Only
            image and caption have to be there.
    """
    rejected: Rejected = []
    named = [Path(file) for file in ([captions] if isinstance(captions, str) else captions or [])]
    existing = set(files)
    if named and all(map(_is_coco, named)):
        listing = list_coco(files, named, CAPTIONS_KEY)
        images = listing.images.assign(split=listing.images["split"].replace("none", None))
        captioned = listing.captions
        rejected += listing.rejected
    else:
        names = {column: USUAL[column] if name is None else (name,) for column, name in columns.items()}
        table_columns = Columns(names, needed=("image", "caption"), key="data.table.columns")
        rows = (
            _rows_of_files(named, table_columns, rejected)
            if named
            else _rows_beside(source, files, table_columns, rejected)
        )
        images, captioned = _list_rows(rows, source.root, existing, rejected)
    present = images["path"].notna()
    if not present.any():
        first = images["image_id"].iloc[0] if len(images) else ""
        raise UserError(
            f"data.table: none of the {len(images)} images in {', '.join(map(str, named)) or source.root} was found",
            where=source.root,
            remedy=f"the paths are relative to data.table.images; the first is '{first}'",
        )
    there = images[present]
    split = make_splits(there["path"], there["split"], splits, validation=validation, test=test, seed=seed)
    images = images.assign(split=split)
    unnamed = []
    for path in sorted(existing.difference(images["path"])):
        if path.lower().endswith(SUFFIXES):
            unnamed.append(ListedImage(path, path, "none"))
        elif path.endswith((tars.SUFFIX, tables.SUFFIX)) or PurePosixPath(path).name in METADATA:
            continue  # It holds rows.
        elif source.root / path not in named:
            rejected.append((path, "not an image file"))
    if unnamed:
        images = pd.concat([images, text_columns(unnamed, ListedImage._fields)], ignore_index=True)
    order = images["path"].fillna(images["image_id"]).argsort(kind="stable").to_numpy()
    row = np.full(len(images) + 1, -1)
    row[order] = np.arange(len(images))
    images = take_rows(images, order)
    return Listing(images.fillna({"split": "none"}), captioned.assign(image_row=row[captioned["image_row"]]), rejected)


def _is_coco(file: Path) -> bool:
    """Whether a file is in COCO's form: a JSON object. A list of objects is a table."""
    if file.suffix.lower() != ".json" or not file.is_file():
        return False
    with suppress(UnicodeDecodeError), open_text(file) as stream:
        return stream.read(100).lstrip().startswith("{")
    return False


_Placed = tuple[Row, str, str | None]
"""A row; the folder that the path of its image is relative to, below the image root; the split that its file tells."""


def _rows_of_files(named: Sequence[Path], columns: Columns, rejected: Rejected) -> Iterator[_Placed]:
    split_of = splits_in(map(str, named))
    for file in named:
        for row in read_rows(file, columns, rejected, key=CAPTIONS_KEY):
            yield row, "", split_of[str(file)]


def _rows_beside(source: ImageSource, files: Sequence[str], columns: Columns, rejected: Rejected) -> Iterator[_Placed]:
    """The rows that are in the folder of the images: metadata files, WebDataset tars, or Parquet files with images.

    Metadata files in folders with the names of splits (``train/metadata.csv``, ``val2017/metadata.csv``) tell splits.
    """
    if metadata := [path for path in files if PurePosixPath(path).name in METADATA and path.count("/") <= 1]:
        folders = {path: path.rpartition("/")[0] for path in metadata}
        split_of = splits_in(folders.values())
        for path, folder in folders.items():
            for row in read_rows(source.root / path, columns, rejected, key=IMAGES_KEY, name=path):
                yield row, f"{folder}/" if folder else "", split_of[folder]
    elif shards := [path for path in files if path.endswith(tars.SUFFIX)]:
        for path in shards:
            yield from ((row, "", None) for row in read_webdataset(source.tars, path, columns, rejected))
    elif parquet := [path for path in files if path.endswith(tables.SUFFIX)]:
        for path in parquet:
            for row in read_rows(source.root / path, columns, rejected, key=IMAGES_KEY, name=path):
                yield row, "", None
    else:
        raise UserError(
            f"{IMAGES_KEY}: no captions beside the images",
            where=source.root,
            remedy=f"set {CAPTIONS_KEY}, or put {' or '.join(METADATA[:2])} into the folder",
        )


def _list_rows(
    rows: Iterator[_Placed], root: Path, existing: set[str], rejected: Rejected
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Images and captions of a :class:`Listing`, in the order of the paths; an image has the split that a row or its
    file tells, else none."""
    captions = text_columns(_list_captions(rows, root, rejected), ("path", "text", "language", "split", "place"))
    captions = take_rows(captions, captions["path"].argsort(kind="stable").to_numpy())
    first = (captions["path"] != captions["path"].shift()).to_numpy()
    image_row, starts = np.cumsum(first) - 1, np.flatnonzero(first)
    images = captions[["path"]][first].reset_index(drop=True)
    with_split = captions.assign(image_row=image_row)[captions["split"].notna()]
    split = with_split.drop_duplicates("image_row").set_index("image_row")["split"]
    odd: Iterator[Any] = with_split[with_split["split"] != with_split["image_row"].map(split)].itertuples()
    for row in odd:
        put_in_split({row.path: split[row.image_row]}, row.path, row.split, row.place)
    paths = captions["path"][first].reset_index(drop=True)
    images = pd.DataFrame({"image_id": paths, "path": paths, "split": split.reindex(paths.index)})
    if len(absent := [row for row, path in enumerate(paths) if _container(path) not in existing]):
        images.loc[absent, "path"] = None
    numbers = pd.Series(np.arange(len(captions)) - starts[image_row]).astype("string[pyarrow]").astype("str")
    ids = captions["path"] + "#" + numbers
    return images, captions[["text", "language"]].assign(caption_id=ids, image_row=image_row)


def _list_captions(rows: Iterator[_Placed], root: Path, rejected: Rejected) -> Iterator[tuple[str | None, ...]]:
    """Path of the image, text, language, split and place of each caption; without a split, the place is None."""
    for row, folder, split_of_file in rows:
        image = row.name("image")
        path = _below(folder, image, root) if image else None
        if path is None:
            reason = "path outside the folder of the images" if image else "row without an image"
            rejected.append((f"{row.place}: {image}" if image else row.place, OddRow(reason)))
            continue
        try:
            texts = captions_of(row.cells.get("caption"))
        except TypeError as error:
            rejected.append((row.place, OddRow(error)))
            continue
        split = row.text("split") or split_of_file
        place = (parse_split(split, row.place), row.place) if split else (None, None)
        for text in texts:
            yield (path, one_line(text), row.text("language").lower() or None, *place)


def _container(path: str) -> str:
    """The file that holds an image: the image itself, a tar, or a Parquet file."""
    if in_table(path):
        return path.rpartition("/")[0]
    inside = split_tar_path(path)
    return path if inside is None else inside[0]


def _below(folder: str, image: str, root: Path) -> str | None:
    """The path below the image root, normalised; None if it leads outside."""
    written = image.replace("\\", "/")
    if written.startswith("/"):
        within = Path(posixpath.normpath(written))
        base = root.absolute()
        return within.relative_to(base).as_posix() if within.is_relative_to(base) else None
    path = posixpath.normpath(folder + written)
    return None if path == ".." or path.startswith("../") else path
