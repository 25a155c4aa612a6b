"""The user's own photographs and captions: rows of a table -> images, captions and splits."""

import posixpath
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.data.archive import OddRow, Rejected, split_tar_path
from vitcapr.data.beside import KEY as IMAGES_KEY
from vitcapr.data.beside import CaptionTable, find_tables, holds_rows
from vitcapr.data.coco import list_coco
from vitcapr.data.collect import ListedImage, Listing, one_line
from vitcapr.data.images import SUFFIXES, ImageSource
from vitcapr.data.parquet_pictures import split_table_path
from vitcapr.data.rows import Columns, captions_of, read_rows
from vitcapr.data.splits import Splits, make_splits, parse_split, put_in_split, splits_in
from vitcapr.errors import UserError
from vitcapr.files import open_text
from vitcapr.formats.captions import ENTRY_MARKS, not_counted
from vitcapr.formats.containers import take_rows, text_columns

EXPECTED = f"name the folder or zip of the images with {IMAGES_KEY}; the paths in a table are relative to it"
_CAPTIONS_KEY, _COLUMNS_KEY, _DRAWN = "data.table.captions", "data.table.columns", "data.table.splits: hash"
_BY_IMAGE = re.compile(r'\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[\s*"')
"""Begins the JSON ``{image: [captions]}``."""
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
    columns: Mapping[str, str | Sequence[str] | None],
    language: str | None,
    splits: Splits,
    changed: Collection[str],
    **shares: Any,
) -> Listing:
    """Return the listing of the data set, in the order of the images' paths.

    An image's id is its path below the image root, and a caption's that path, ``#`` and its number; in COCO's form both
    have the ids of the file. A column gives the splits; without one, the names of the caption files; without those, the
    names of the folders, tars and Parquet files that hold the images.

    Args:
        files: the paths that exist below the image root. An image that no row names is listed without a caption.
        captions: the file of the captions, or several; None: they are beside the images.
        columns: the names of ``image``, ``caption`` (one or several), ``language`` and ``split``; None: one of the
            usual names. Image, caption and each column that is named have to be there.
        language: of the captions without one of their own; None: en.
        changed: the keys of ``shares`` that the user has set.
        shares: see :func:`make_splits`.
    """
    named = [Path(file) for file in ([captions] if isinstance(captions, str) else captions or [])]
    by_name = splits in ("auto", "given")
    note, notes, rejected = "", list[str](), list[tuple[str, str]]()
    used: set[str] = set()
    if named and all(map(_is_coco, named)):
        if idle := [column for column, name in columns.items() if name is not None]:
            what = f"{_COLUMNS_KEY}.{idle[0]} has no effect on captions in COCO's form"
            raise UserError(what, where=named[0], remedy="remove it")
        listing = list_coco(files, dict.fromkeys(named), _CAPTIONS_KEY)
        if by_name and (listing.images["split"] == "none").all():
            split_of, note = splits_in(map(str, named), _DRAWN)
            if split_of:
                listing = list_coco(files, {file: split_of[str(file)] for file in named}, _CAPTIONS_KEY)
        images, captioned, notes = listing.images, listing.captions, [*listing.notes]
        images = images.assign(split=images["split"].replace("none", None))
        rejected += listing.rejected
    else:
        asked = _columns(columns, by_name)
        if named:
            read = [CaptionTable(str(file), read_rows(file, asked, rejected, key=_CAPTIONS_KEY)) for file in named]
        else:
            read = find_tables(source, files, asked, rejected, used, notes)
        images, captioned, note = _list_rows(read, by_name, source.root, files, rejected)
    if language and len(captioned) and not (captioned["language"].isna() | (captioned["language"] == language)).any():
        what = f"data.table.language has no effect: every caption has its own language, and none is in {language}"
        raise UserError(what, remedy="remove it")
    there = images["path"].dropna()
    if by_name and images["split"].isna().all():
        folders = there.str.replace("/?[^/]*$", "", regex=True)
        by_folder, other = splits_in(folders.unique(), _DRAWN)
        images = images.assign(split=folders.map(by_folder).astype("str").reindex(images.index))
        note = other if by_folder else note or other
    if len(there):
        given = images["split"][there.index]
        images = images.assign(split=make_splits(there, given, splits, changed, **shares).reindex(images.index))
    images = _add_unnamed(images, set(files) - used, {str(file) for file in named}, source.root, rejected)
    order = images["path"].fillna(images["image_id"]).argsort(kind="stable").to_numpy()
    row = np.full(len(images) + 1, -1)
    row[order] = np.arange(len(images))
    captioned = captioned.assign(image_row=row[captioned["image_row"]]).fillna({"language": language or "en"})
    return Listing(
        take_rows(images, order).fillna({"split": "none"}),
        captioned,
        rejected,
        [each for each in (note, *notes) if each],
    )


def _columns(names: Mapping[str, str | Sequence[str] | None], by_name: bool) -> Columns:
    """Return the columns; of several columns of captions (``caption.0``, ``caption.1``) each is needed."""
    asked: dict[str, Sequence[str]] = {}
    for column, name in names.items():
        if column != "split" or by_name:
            many = name if isinstance(name, list | tuple) else ()
            asked |= {f"{column}.{place}": (each,) for place, each in enumerate(many)}
            asked |= {} if many else {column: USUAL[column] if name is None else (str(name),)}
    needed = [column for column in asked if column in ("image", "caption") or names[column.partition(".")[0]]]
    return Columns({**asked, **ENTRY_MARKS}, needed, key=_COLUMNS_KEY)


def _is_coco(file: Path) -> bool:
    """Return whether a file is in COCO's form: a JSON object, but for {image: [captions]}. A list is a table."""
    if file.suffix.lower() != ".json" or not file.is_file():
        return False
    with suppress(UnicodeDecodeError), open_text(file) as stream:
        start = stream.read(4096).lstrip()
        return start.startswith("{") and not _BY_IMAGE.match(start)
    return False


def _add_unnamed(
    images: pd.DataFrame, files: Collection[str], named: Collection[str], root: Path, rejected: Rejected
) -> pd.DataFrame:
    """Add the pictures that no row names; other unused files of the folder are rejected."""
    unnamed = []
    containers = set(images["path"].dropna().map(_container)) if any(map(holds_rows, files)) else ()
    for path in sorted(set(files).difference(images["path"], containers)):
        if path.lower().endswith(SUFFIXES):
            unnamed.append(ListedImage(path, path, "none"))
        elif str(root / path) not in named:
            reason = "not used: the captions are in other files" if holds_rows(path) else "not an image file"
            rejected.append((path, reason))
    if not unnamed:
        return images
    return pd.concat([images, text_columns(unnamed, ListedImage._fields)], ignore_index=True)


def _list_rows(
    read: Sequence[CaptionTable], by_name: bool, root: Path, files: Collection[str], rejected: Rejected
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Return images and captions of a :class:`Listing`, in the order of the paths, and its note.

    If no row has a split, the names of the tables give the splits. An image has one split, or none.
    """
    existing = set(files)
    rows = _list_captions(read, root, existing, rejected)
    captions = text_columns(rows, ("path", "text", "language", "split", "place", "file"))
    captions = take_rows(captions, captions["path"].argsort(kind="stable").to_numpy())
    in_rows = not by_name or captions["split"].notna().any()
    split_of, note = ({}, "") if in_rows else splits_in((table.name for table in read if table.name), _DRAWN)
    if split_of:
        captions = captions.assign(split=captions["file"].map(split_of).astype("str"))
    if len(read) > 1 and captions["file"].notna().any():
        first_file = captions.groupby(["path", "text"], sort=False)["file"].transform("first")
        again = ((captions["file"] != first_file) & (captions["text"] != "")).to_numpy()
        reasons = "the same caption as in " + first_file[again]
        rejected += zip(captions["place"][again], reasons, strict=True)
    else:
        again = np.zeros(len(captions), bool)
    first = (captions["path"] != captions["path"].shift()).to_numpy()
    image_row = np.cumsum(first) - 1
    with_split = captions.assign(image_row=image_row)[captions["split"].notna()]
    split = with_split.drop_duplicates("image_row").set_index("image_row")["split"]
    odd: Iterator[Any] = with_split[with_split["split"] != with_split["image_row"].map(split)].itertuples()
    for row in odd:
        put_in_split({row.path: split[row.image_row]}, row.path, row.split, row.place)
    paths = captions["path"][first].reset_index(drop=True)
    images = pd.DataFrame({"image_id": paths, "path": paths, "split": split.reindex(paths.index)})
    if len(absent := [row for row, path in enumerate(paths) if _container(path) not in existing]):
        images.loc[absent, "path"] = None
    kept = take_rows(captions.assign(image_row=image_row), np.flatnonzero(~again))
    numbers = kept.groupby("image_row").cumcount().astype("string[pyarrow]").astype("str")
    return images, kept[["text", "language", "image_row"]].assign(caption_id=kept["path"] + "#" + numbers), note


def _list_captions(
    read: Sequence[CaptionTable], root: Path, existing: Collection[str], rejected: Rejected
) -> Iterator[tuple[str | None, ...]]:
    """Yield path of the image, text, language, split, place and table of each caption.

    The place is that of a split; the table counts if there are several.
    """
    forms: dict[str, str] = {}
    for name in (name for name in existing if not name.isascii()):
        form = unicodedata.normalize("NFC", name)
        forms[form] = "" if form in forms else name
    for table in read:
        file = table.name if len(read) > 1 else None
        for row in table.rows:
            image, cell = row.name("image"), row.cells.get("image")
            if not image or (path := _below(table.folder, image, root)) is None:
                reason = "path outside the folder of the images" if image else "row without an image"
                if not image and not isinstance(cell, str | None):
                    reason = f"an image is one path or one picture, not {cell!r:.40}"
                rejected.append((f"{row.place}: {image}" if image else row.place, OddRow(reason)))
                continue
            if path not in existing and not path.isascii():
                path = forms.get(unicodedata.normalize("NFC", path), "") or path
            if reason := not_counted(row.cells):
                rejected.append((row.place, reason))
                continue
            cells = [cell for column, cell in row.cells.items() if column.startswith("caption")] or [None]
            texts = [text for cell in cells for text in captions_of(cell, row.place, rejected)]
            split = parse_split(row.text("split"), row.place) if row.text("split") else None
            place = row.place if split or file else None
            for text in texts:
                yield path, one_line(text), row.text("language").lower() or None, split, place, file


def _container(path: str) -> str:
    """Return the file that holds an image: the image itself, a tar, or a Parquet file."""
    inside = split_table_path(path) or split_tar_path(path)
    return path if inside is None else inside[0]


def _below(folder: str, image: str, root: Path) -> str | None:
    """Return the path below the image root, normalised; None if it leads outside."""
    written = image.replace("\\", "/")
    if written.startswith("/"):
        within = Path(posixpath.normpath(written))
        base = root.absolute()
        return within.relative_to(base).as_posix() if within.is_relative_to(base) else None
    path = posixpath.normpath(folder + written)
    return None if path == ".." or path.startswith("../") else path
