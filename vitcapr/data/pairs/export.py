"""Pairs out of a manifest into a table that reads back as the same pairs; ``table.py`` is the way in."""

import base64
import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from vitcapr.data.images import BadImage, ImageSource
from vitcapr.errors import UserError
from vitcapr.files import atomic_path
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.pairs import TABLE, read_pair_table

COLUMNS = ("text", "image", "language", "category", "split")
"""What ``data.pairs.columns`` calls them by default."""
KINDS = (".csv", ".tsv", ".jsonl")


def export_pairs(
    data: Manifest, manifest: Path, output: Path, *, encoded: bool, advance: Callable[[int], None] = lambda _: None
) -> int:
    """Write a row a pair, in the manifest's order, with the text as it was before cleaning.

    Read back, the texts, pictures, languages, categories and the test split are the same. What is for training and for
    validation is dealt anew, by the ids of the pictures, which are then digests of their bytes.

    Args:
        manifest: the path of ``data``, beside which ``pairs.parquet`` lies.
        output: CSV, TSV or JSON lines, by its name.
        encoded: the pictures' files in Base64; otherwise their paths below the image root.
        advance: told of every row.

    Returns:
        How many rows were written.

    Raises:
        UserError: the data set is not one of pairs, the table is of no known kind, or a picture is gone.
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
