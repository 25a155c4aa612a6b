"""The Parquet releases of Flickr30k on the Hugging Face hub: a row an image, its bytes and captions in it.

``lmms-lab/flickr30k`` puts all 31,783 rows into one split named test; other copies have a column ``split``, or files
named after their split. All of that is read from the small columns; no picture is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from vitcapr.data.collect import ListedCaption, ListedImage
from vitcapr.data.tables import open_table, picture_path
from vitcapr.errors import UserError

CAPTION_COLUMNS = ("caption", "captions", "raw", "text")
NAME_COLUMNS = ("filename", "file_name", "img_id", "image_id")
SPLITS = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "test": "test"}


@dataclass(frozen=True)
class Release:
    """What the files list.

    Attributes:
        splits: image id -> split; empty where the files do not tell.
    """

    images: list[ListedImage]
    captions: list[ListedCaption]
    rejected: list[tuple[str, str]]
    splits: dict[str, str]


@dataclass(frozen=True)
class _Row:
    name: str
    path: str
    texts: list[str]
    split: str | None


def read_release(root: Path, tables: Sequence[str]) -> Release:
    """Every image and caption of ``tables``, Parquet files relative to ``root``, in the order given.

    An image's id is its file name; a caption's is that name, ``#`` and its number. Where a row holds one caption
    only, rows of the same image are put together.

    Raises:
        UserError: a file is not Parquet, or has not the columns of such a release, or names a split unknown here.
    """
    images: dict[str, ListedImage] = {}
    captions: list[ListedCaption] = []
    rejected: list[tuple[str, str]] = []
    splits: dict[str, str] = {}
    numbers: dict[str, int] = {}
    by_file = {name: _split_of_file(name) for name in tables}
    # Files that all claim one split, as all rows of lmms-lab's are test, tell nothing.
    files_tell = len(set(by_file.values())) > 1
    for table in tables:
        for row in _rows(root, table):
            if not row.name:
                rejected.append((row.path, "row without the name of its image"))
                continue
            if row.name in images and (len(row.texts) > 1 or numbers[row.name] == 0):
                rejected.append((row.path, f"duplicate of image {row.name}"))
                continue
            images.setdefault(row.name, ListedImage(row.name, row.path, "none"))
            split = row.split if row.split is not None else by_file[table] if files_tell else None
            if split is not None and splits.setdefault(row.name, split) != split:
                raise UserError(
                    f"image '{row.name}' is in the {splits[row.name]} split and in the {split} split",
                    where=root / table,
                    remedy="an image may be in one split only",
                )
            first = numbers.setdefault(row.name, 0)
            captions += [
                ListedCaption(f"{row.name}#{number}", row.name, text) for number, text in enumerate(row.texts, first)
            ]
            numbers[row.name] += len(row.texts)
    if set(splits.values()) == {"test"}:
        splits = {}
    return Release(list(images.values()), captions, rejected, splits)


def _rows(root: Path, name: str) -> Iterator[_Row]:
    """The rows of one file, a row group at a time, without their pictures."""
    with open_table(root / name) as table:
        caption = _column(table.schema_arrow, CAPTION_COLUMNS, root / name)
        identity = _column(table.schema_arrow, NAME_COLUMNS, root / name)
        columns = [caption, identity, *(["split"] if "split" in table.schema_arrow.names else [])]
        number = 0
        for group in range(table.num_row_groups):
            try:
                rows = table.read_row_group(group, columns=columns).to_pylist()
            except (pa.ArrowException, OSError) as error:
                what = f"row group {group} of the Parquet file is damaged"
                raise UserError(what, where=root / name, remedy="fetch or copy it again") from error
            for row in rows:
                yield _Row(
                    _identifier(row[identity], identity),
                    picture_path(name, number),
                    _texts(row[caption]),
                    _known_split(row.get("split"), root / name),
                )
                number += 1


def _column(schema: "pa.Schema", names: Sequence[str], where: Path) -> str:
    for name in names:
        if name in schema.names:
            return name
    raise UserError(
        f"the Parquet file has no column {' or '.join(names[:2])}; it has {', '.join(schema.names)}",
        where=where,
        remedy="use lmms-lab/flickr30k or another release with image, caption and filename",
    )


def _identifier(value: Any, column: str) -> str:
    """The file's name, empty where there is none; a bare number, as in ``img_id``, is a name too."""
    if value is None:
        return ""
    return PurePosixPath(str(value)).name if column.startswith("file") else str(value)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(text) for text in value or [] if text is not None]


def _known_split(value: Any, where: Path) -> str | None:
    if value is None or str(value) in ("", "none"):
        return None
    if str(value) not in SPLITS:
        raise UserError(f"the split '{value}' is not known", where=where, remedy=f"one of {', '.join(SPLITS)}")
    return SPLITS[str(value)]


def _split_of_file(name: str) -> str | None:
    """``data/test-00000-of-00009.parquet`` -> test."""
    return SPLITS.get(PurePosixPath(name).stem.split("-")[0].lower())
