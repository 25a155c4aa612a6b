"""Pairs in a table, with paths of pictures or the pictures themselves: the way in, and the way out again."""

import base64
import csv
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

from vitcapr.data.collect import Rejected
from vitcapr.data.images import BadImage, ImageSource
from vitcapr.data.table_files import read_rows
from vitcapr.errors import UserError
from vitcapr.files import atomic_path, sha256_bytes
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.pairs import TABLE, read_pair_table

KINDS = (".csv", ".tsv", ".jsonl")
"""The kinds of tables that can be written; Parquet can be read."""
LANGUAGES = ("en", "zh")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class Pair:
    """A caption as it is listed.

    Attributes:
        path: the picture, relative to the image root with ``/``; None if it is not there.
        language: ``zh`` or ``en``.
        category: as given; None where it is to be derived from the words.
        test: whether the source sets the picture apart for testing.
    """

    caption_id: str
    image_id: str
    path: str | None
    language: str
    text: str
    category: str | None = None
    test: bool = False


def detect_language(text: str) -> str:
    """``zh`` where there is a Han character, else ``en``: the two languages differ in script."""
    return "zh" if _HAN.search(text) else "en"


_KEY = "data.pairs.table"


class _NoPair(Exception):
    """The reason for omitting a row of a table; ``rejected.csv`` holds the text."""


@dataclass(frozen=True)
class ColumnNames:
    """What the columns are called; those of language, category and split need not be there."""

    text: str = "text"
    image: str = "image"
    language: str = "language"
    category: str = "category"
    split: str = "split"

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


def list_table(
    file: Path, columns: ColumnNames, *, encoded: bool, existing: set[str], unpack: Callable[[bytes], str]
) -> tuple[list[Pair], Rejected]:
    """The pairs of a table, in its order, and (item, reason) of the rows that are none.

    A caption's id is ``row-`` and its number. A picture's id is its path; of a picture inside the table, the digest of
    its bytes, so that the same picture in two rows is one.

    Args:
        encoded: the image column holds Base64 and not paths. Bytes, which Parquet can hold, are taken as they are.
        existing: the paths that exist below the image root.
        unpack: writes a picture's bytes below the image root, and says where.
    """
    pairs: list[Pair] = []
    rejected: Rejected = []
    for number, row in enumerate(read_rows(file, _KEY), start=1):
        if missing := [name for name in (columns.text, columns.image) if name not in row]:
            raise UserError(
                f"{_KEY}: row {number} has no '{missing[0]}'",
                where=file,
                remedy=f"data.pairs.columns says what the columns are called; there are {', '.join(map(str, row))}",
            )
        try:
            pairs.append(_parse_pair(number, row, columns, encoded, existing, unpack))
        except _NoPair as problem:
            rejected.append((f"{file.name}:{number}", str(problem)))
    return pairs, rejected


def _parse_pair(
    number: int,
    row: dict[str, Any],
    columns: ColumnNames,
    encoded: bool,
    existing: set[str],
    unpack: Callable[[bytes], str],
) -> Pair:
    text, image = str(row[columns.text] or ""), row[columns.image]
    language = str(row.get(columns.language) or detect_language(text))
    if language not in LANGUAGES:
        raise _NoPair(f"language '{language}' is neither en nor zh")
    if isinstance(image, dict):
        image = image.get("bytes")
    if not image:
        raise _NoPair("no picture")
    path: str | None
    if isinstance(image, bytes) or encoded:
        content = image if isinstance(image, bytes) else _decoded(image)
        image_id, path = sha256_bytes(content), unpack(content)
    else:
        image_id = str(image).replace("\\", "/").removeprefix("./")
        path = image_id if image_id in existing else None
    category = str(row[columns.category]) if row.get(columns.category) else None
    return Pair(f"row-{number}", image_id, path, language, text, category, row.get(columns.split) == "test")


def _decoded(text: str) -> bytes:
    """The bytes of a Base64 string, also of a ``data:`` URL and of one broken into lines."""
    body = text.partition("base64,")[2] if text.startswith("data:") else text
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except ValueError as error:
        raise _NoPair("not Base64") from error


def export_pairs(
    data: Manifest, manifest: Path, output: Path, *, encoded: bool, advance: Callable[[int], None] = lambda _: None
) -> int:
    """Write a row a pair, in the manifest's order, with the text as it was before cleaning; the number of rows.

    Read back, the texts, pictures, languages, categories and the test split are the same. What is for training and for
    validation is dealt anew, by the ids of the pictures, which are then digests of their bytes.

    Args:
        manifest: the path of ``data``, beside which ``pairs.parquet`` lies.
        output: CSV, TSV or JSON lines, by its name.
        encoded: the pictures' files in Base64; otherwise their paths below the image root.
    """
    if output.suffix.lower() not in KINDS:
        raise UserError("unknown kind of table", where=output, remedy=f"name one of {', '.join(KINDS)}")
    number = 0
    with atomic_path(output) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        write = _writer(stream, output.suffix.lower())
        for row in _rows(data, manifest, encoded):
            write(row)
            advance(1)
            number += 1
    return number


def _rows(data: Manifest, manifest: Path, encoded: bool) -> Iterator[dict[str, str]]:
    beside = read_pair_table(manifest.parent / TABLE, data.captions["caption_id"].tolist())
    path_of = dict(zip(data.images["image_id"], data.images["path"], strict=True))
    captions = data.captions[["image_id", "language", "split"]].itertuples(index=False)
    held, image = "", ""
    with ImageSource(data.image_root) as source:
        for caption, raw, category in zip(captions, beside["raw"], beside["category"], strict=True):
            if caption.image_id != held:
                held, path = str(caption.image_id), path_of[caption.image_id]
                image = _encoded(source, path) if encoded else path
            values = (raw, image, caption.language, category, caption.split)
            yield dict(zip(ColumnNames.names(), map(str, values), strict=True))


def _encoded(source: ImageSource, path: str) -> str:
    try:
        return base64.b64encode(source.read(path)).decode("ascii")
    except BadImage as bad:
        raise UserError(f"cannot read {path}: {bad}", where=source.root, remedy="run the data stage again") from bad


def _writer(stream: IO[str], kind: str) -> Callable[[dict[str, str]], object]:
    if kind == ".jsonl":
        return lambda row: stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    table = csv.DictWriter(stream, ColumnNames.names(), delimiter="\t" if kind == ".tsv" else ",", lineterminator="\n")
    table.writeheader()
    return table.writerow
