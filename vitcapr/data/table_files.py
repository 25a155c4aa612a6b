"""Rows of the user's files: CSV, TSV, JSON lines, Parquet, COCO's JSON, or what lies beside the images."""

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vitcapr.data.archive import TAR, TarFiles, tar_members
from vitcapr.data.collect import SPLIT_NAMES, Rejected
from vitcapr.data.images import SUFFIXES
from vitcapr.data.tables import SUFFIX as PARQUET
from vitcapr.data.tables import picture_path
from vitcapr.errors import UserError
from vitcapr.files import check_is_file, read_json

Row = dict[str, Any]
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
CAPTIONS_KEY, IMAGES_KEY = "data.table.captions", "data.table.images"
_TOO_MANY = "more cells than the header"
"""The key of the cells of a CSV or TSV row that no column names."""


@dataclass(frozen=True, slots=True)
class Record:
    """A row as it is written.

    Attributes:
        place: the file and the number of the row, for ``rejected.csv``.
        cells: by the names of the columns.
        folder: the folder that the path of the image is relative to, relative to the image root: empty, or ``train/``.
        split: the split of the whole file, for a row without a split of its own.
    """

    place: str
    cells: Mapping[str, Any]
    folder: str = ""
    split: str | None = None

    def text(self, column: str) -> str:
        """The cell of a column, without spaces around it; empty if there is none."""
        cell = self.cells.get(column)
        return "" if cell is None else str(cell).strip()


def read_rows(file: Path, key: str) -> Iterator[Row]:
    """The rows of a table, a few in memory at a time. A cell of CSV and TSV is text; a missing cell is empty.

    Args:
        key: the configuration key that names the file, for the error message.
    """
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise UserError(f"{key}: unknown kind of table", where=file, remedy=f"name one of {', '.join(_READERS)}")
    try:
        check_is_file(file)
        yield from reader(file)
    except FileNotFoundError as error:
        raise UserError(f"{key}: no such file", where=file) from error
    except UnicodeDecodeError as error:
        remedy = "save the table in the encoding UTF-8"
        raise UserError(f"{key}: not text in UTF-8: {error}", where=file, remedy=remedy) from error
    except (ValueError, csv.Error, pa.ArrowException) as error:
        raise UserError(f"{key}: cannot be read: {error}", where=file) from error


def _csv(file: Path) -> Iterator[Row]:
    """The separator is a semicolon if the header has semicolons and no comma, as spreadsheets write it."""
    # A picture in Base64 is far longer than the 131,072 characters that a cell may have by default.
    csv.field_size_limit(sys.maxsize)
    with file.open(encoding="utf-8-sig", newline="") as stream:
        header = stream.readline()
        separator = ";" if ";" in header and "," not in header else ","
        stream.seek(0)
        delimiter = "\t" if file.suffix.lower() == ".tsv" else separator
        yield from csv.DictReader(stream, delimiter=delimiter, restval="", restkey=_TOO_MANY)


def _json_lines(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                try:
                    yield dict(json.loads(line))
                except (ValueError, TypeError) as error:
                    raise ValueError(f"line {number} is not a JSON object: {error}") from error


def _parquet(file: Path) -> Iterator[Row]:
    with pq.ParquetFile(file) as table:
        for batch in table.iter_batches(batch_size=256, use_threads=False):
            yield from batch.to_pylist()


_READERS: dict[str, Callable[[Path], Iterator[Row]]] = {
    ".csv": _csv,
    ".tsv": _csv,
    ".jsonl": _json_lines,
    ".parquet": _parquet,
}


def read_captions(file: Path, rejected: Rejected) -> list[Record]:
    """The rows of a file beside the images: CSV, TSV, JSON lines, Parquet, or JSON (a list of objects, or COCO's form).

    Args:
        rejected: receives (item, reason) of the rows that cannot be read.
    """
    if not file.is_file():
        kinds = ", ".join((*_READERS, ".json"))
        raise UserError(f"{CAPTIONS_KEY}: no such file", where=file, remedy=f"name a file that ends with {kinds}")
    rows = _json(file) if file.suffix.lower() == ".json" else read_rows(file, CAPTIONS_KEY)
    return list(_records(rows, file.name, rejected))


def read_beside(root: Path, files: Sequence[str], rejected: Rejected) -> list[Record]:
    """The rows that are in the folder of the images: metadata files, WebDataset tars, or Parquet files with images.

    A metadata file in a folder with the name of a split (``train/metadata.csv``) holds this split.

    Args:
        root: the folder.
        files: the paths that exist below it.
    """
    if metadata := [path for path in files if PurePosixPath(path).name in METADATA and path.count("/") <= 1]:
        return [record for path in metadata for record in _metadata(root, path, rejected)]
    if shards := [path for path in files if path.endswith(TAR)]:
        return [record for path in shards for record in _webdataset(root, path, rejected)]
    if tables := [path for path in files if path.endswith(PARQUET)]:
        return [record for path in tables for record in _pictures(root, path)]
    raise UserError(
        f"{IMAGES_KEY}: no captions beside the images",
        where=root,
        remedy=f"set {CAPTIONS_KEY}, or put {' or '.join(METADATA[:2])} into the folder",
    )


def _records(rows: Iterator[Row], name: str, rejected: Rejected, **about: Any) -> Iterator[Record]:
    for number, row in enumerate(rows, start=1):
        place = f"{name} row {number}"
        if _TOO_MANY in row:
            rejected.append((place, "more cells than columns: a caption with the separator needs quotation marks"))
        else:
            yield Record(place, row, **about)


def _metadata(root: Path, path: str, rejected: Rejected) -> Iterator[Record]:
    folder, slash, _ = path.rpartition("/")
    split = SPLIT_NAMES.get(folder.lower())
    return _records(read_rows(root / path, IMAGES_KEY), path, rejected, folder=folder + slash, split=split)


def _webdataset(root: Path, path: str, rejected: Rejected) -> Iterator[Record]:
    """A row for every sample: files with the same name up to the first dot, among them an image and ``.txt`` or
    ``.json``."""
    samples: dict[str, dict[str, str]] = {}
    for member in tar_members(root / path):
        folder, slash, name = member.name.rpartition("/")
        stem, _, ending = name.partition(".")
        samples.setdefault(f"{folder}{slash}{stem}", {})[ending.lower()] = member.name
    source = TarFiles(root)
    try:
        for key, by_ending in samples.items():
            images = [name for ending, name in by_ending.items() if f".{ending}".endswith(SUFFIXES)]
            if not images:
                rejected.append((f"{path} {key}", "sample without an image"))
                continue
            cells: dict[str, Any] = {}
            try:
                if "json" in by_ending:
                    cells |= dict(json.loads(source.read(path, by_ending["json"])))
                if "txt" in by_ending:
                    cells["caption"] = source.read(path, by_ending["txt"]).decode("utf-8-sig")
            except (ValueError, TypeError) as error:
                rejected.append((f"{path} {key}", f"captions cannot be read: {error}"))
                continue
            yield Record(f"{path} {key}", {**cells, "image": f"{path}/{images[0]}"})
    finally:
        source.close()


def _pictures(root: Path, path: str) -> Iterator[Record]:
    """The rows of a Parquet file, with the paths of the pictures that it holds in place of their bytes."""
    try:
        check_is_file(root / path)
        with pq.ParquetFile(root / path) as table:
            schema = table.schema_arrow
            held = [name for name in schema.names if _holds_bytes(schema.field(name).type)]
            columns = [name for name in schema.names if name not in held]
            row = 0
            for batch in table.iter_batches(columns=columns, use_threads=False):
                for cells in batch.to_pylist():
                    inside = dict.fromkeys(held, picture_path(path, row))
                    yield Record(f"{path} row {row + 1}", {**cells, **inside})
                    row += 1
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{IMAGES_KEY}: not a whole Parquet file", where=root / path) from error


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return bool(kind.get_field_index("bytes") >= 0)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _json(file: Path) -> Iterator[Row]:
    content = read_json(file)
    try:
        if isinstance(content, list):
            yield from (dict(row) for row in content)
            return
        images = {entry["id"]: entry for entry in content["images"]}
        for caption in content["annotations"]:
            image = images.get(caption["image_id"], {"file_name": str(caption["image_id"])})
            yield {**image, "image": image["file_name"], "caption": caption["caption"]}
    except (KeyError, TypeError, ValueError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(
            f"{CAPTIONS_KEY}: neither a list of objects nor captions in COCO's form: {what}",
            where=file,
            remedy="COCO's form has images (id, file_name) and annotations (image_id, caption)",
        ) from error
