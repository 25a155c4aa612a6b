"""Pairs in a table, with paths of pictures or the pictures themselves: the way in, and the way out again."""

import base64
import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.data.images import BadImage, ImageSource
from vitcapr.data.rows import Columns, Row, captions_of, read_rows
from vitcapr.data.tars import OddRow, Rejected
from vitcapr.errors import UserError
from vitcapr.files import atomic_path, sha256_bytes
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.pairs import TABLE, read_pair_table

KINDS = (".csv", ".tsv", ".jsonl")
"""The kinds of tables that can be written; Parquet can be read."""
LANGUAGES = ("en", "zh")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def detect_language(text: str) -> str:
    """``zh`` where there is a Han character, else ``en``: the two languages differ in script."""
    return "zh" if _HAN.search(text) else "en"


COLUMNS = ("text", "image", "language", "category", "split")
"""Those of language, category and split need not be there."""


def list_table(
    file: Path, columns: Mapping[str, str], *, encoded: bool, existing: set[str], unpack: Callable[[bytes], str]
) -> Listing:
    """The pairs of a table, in its order. The split of an image is ``test`` if one of its rows says so, else ``none``.

    A caption's id is ``row-`` and its number. A picture's id is its path; of a picture inside the table, the digest of
    its bytes, so that the same picture in two rows is one.

    Args:
        columns: what each of ``COLUMNS`` is called.
        encoded: the image column holds Base64 and not paths. Bytes, which Parquet can hold, are taken as they are.
        existing: the paths that exist below the image root.
        unpack: writes a picture's bytes below the image root, and says where.
    """
    images: dict[str, ListedImage] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    names = {column: (name,) for column, name in columns.items()}
    table_columns = Columns(names, needed=("text", "image"), key="data.pairs.columns")
    for row in read_rows(file, table_columns, rejected, key="data.pairs.table"):
        try:
            text, *more = captions_of(row.cells.get("text"))
            if more:
                raise TypeError("a list of captions: a pair has one")
            language = row.text("language") or detect_language(text)
            if language not in LANGUAGES:
                raise ValueError(f"language '{language}' is neither en nor zh")
            image_id, path = _place(row, encoded, existing, unpack)
        except (ValueError, TypeError) as error:
            rejected.append((row.place, OddRow(error)))
            continue
        if image_id not in images or row.text("split") == "test":
            images[image_id] = ListedImage(image_id, path, "test" if row.text("split") == "test" else "none")
        category = row.text("category") or None
        captions.append(ListedCaption(f"row-{row.number}", image_id, text, language, category))
    return Listing.from_records(images.values(), captions, rejected)


def _place(row: Row, encoded: bool, existing: set[str], unpack: Callable[[bytes], str]) -> tuple[str, str | None]:
    """Id and path of the picture of a row."""
    image: Any = row.cells.get("image")
    content = image.get("bytes") if isinstance(image, dict) else image
    if isinstance(content, str) and encoded and content:
        content = _decode(content)
    if isinstance(content, bytes) and content:
        return sha256_bytes(content), unpack(content)
    if encoded or not (name := row.name("image")):
        raise ValueError("no picture")
    image_id = name.replace("\\", "/").removeprefix("./")
    return image_id, image_id if image_id in existing else None


def _decode(text: str) -> bytes:
    """The bytes of a Base64 string, also of a ``data:`` URL and of one broken into lines."""
    body = text.partition("base64,")[2] if text.startswith("data:") else text
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except ValueError as error:
        raise ValueError("not Base64") from error


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
            yield dict(zip(COLUMNS, map(str, values), strict=True))


def _encoded(source: ImageSource, path: str) -> str:
    try:
        return base64.b64encode(source.read(path)).decode("ascii")
    except BadImage as bad:
        raise UserError(f"cannot read {path}: {bad}", where=source.root, remedy="run the data stage again") from bad


def _writer(stream: IO[str], kind: str) -> Callable[[dict[str, str]], object]:
    if kind == ".jsonl":
        return lambda row: stream.write(json.dumps(row, ensure_ascii=False) + "\n")
    table = csv.DictWriter(stream, COLUMNS, delimiter="\t" if kind == ".tsv" else ",", lineterminator="\n")
    table.writeheader()
    return table.writerow
