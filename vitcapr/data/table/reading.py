"""Where the user's captions are: a table, a COCO-style JSON file, or beside the images."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vitcapr.data import tars
from vitcapr.data.images import SUFFIXES
from vitcapr.data.rows import READERS, TOO_MANY, Row, read_rows
from vitcapr.data.table.record import Record
from vitcapr.data.table.splits import FOLDERS
from vitcapr.data.tables import SUFFIX as PARQUET
from vitcapr.data.tables import picture_path
from vitcapr.errors import UserError
from vitcapr.files import check_is_file, read_json

Rejected = list[tuple[str, str]]
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
CAPTIONS_KEY, IMAGES_KEY = "data.table.captions", "data.table.images"
KINDS = ", ".join((*READERS, ".json"))
"""The kinds of files that ``data.table.captions`` may name."""


def read_captions(file: Path, rejected: Rejected) -> list[Record]:
    """The rows of a file beside the images: CSV, TSV, JSON lines, Parquet, or JSON (a list of objects, or COCO's form).

    Args:
        rejected: receives (item, reason) of the rows that cannot be read.

    Raises:
        UserError: there is no such file, or it is of another form.
    """
    if not file.is_file():
        raise UserError(f"{CAPTIONS_KEY}: no such file", where=file, remedy=f"name a file that ends with {KINDS}")
    rows = _json(file) if file.suffix.lower() == ".json" else read_rows(file, CAPTIONS_KEY)
    return list(_sound(rows, file.name, rejected))


def read_beside(root: Path, files: Sequence[str], rejected: Rejected) -> list[Record]:
    """The rows that are in the folder of the images: metadata files, WebDataset tars, or Parquet files with images.

    A metadata file in a folder with the name of a split (``train/metadata.csv``) holds this split.

    Args:
        root: the folder.
        files: the paths that exist below it.

    Raises:
        UserError: there are no captions, or a file is damaged.
    """
    readers: tuple[tuple[list[str], Callable[[Path, str, Rejected], Iterator[Record]]], ...] = (
        ([path for path in files if PurePosixPath(path).name in METADATA and path.count("/") <= 1], _metadata),
        ([path for path in files if path.endswith(tars.SUFFIX)], _webdataset),
        ([path for path in files if path.endswith(PARQUET)], _pictures),
    )
    for found, reader in readers:
        if found:
            return [record for path in found for record in reader(root, path, rejected)]
    raise UserError(
        f"{IMAGES_KEY}: no captions beside the images",
        where=root,
        remedy=f"set {CAPTIONS_KEY}, or put {' or '.join(METADATA[:2])} into the folder",
    )


def _sound(rows: Iterator[Row], name: str, rejected: Rejected, **about: Any) -> Iterator[Record]:
    for number, row in enumerate(rows, start=1):
        place = f"{name} row {number}"
        if TOO_MANY in row:
            rejected.append((place, "more cells than columns: a caption with the separator needs quotation marks"))
        else:
            yield Record(place, row, **about)


def _metadata(root: Path, path: str, rejected: Rejected) -> Iterator[Record]:
    folder, slash, _ = path.rpartition("/")
    return _sound(
        read_rows(root / path, IMAGES_KEY), path, rejected, folder=folder + slash, split=FOLDERS.get(folder.lower())
    )


def _webdataset(root: Path, path: str, rejected: Rejected) -> Iterator[Record]:
    """A row for every sample: files with the same name up to the first dot, among them an image and ``.txt`` or
    ``.json``."""
    samples: dict[str, dict[str, str]] = {}
    for member in tars.members(root / path):
        folder, slash, name = member.name.rpartition("/")
        stem, _, ending = name.partition(".")
        samples.setdefault(f"{folder}{slash}{stem}", {})[ending.lower()] = member.name
    source = tars.TarFiles(root)
    try:
        for key, by_ending in samples.items():
            images = [name for ending, name in by_ending.items() if f".{ending}".endswith(SUFFIXES)]
            if not images:
                rejected.append((f"{path} {key}", "sample without an image"))
                continue
            cells: dict[str, Any] = {}
            try:
                if "json" in by_ending:
                    cells |= _object(source.read(path, by_ending["json"]))
                if "txt" in by_ending:
                    cells["caption"] = source.read(path, by_ending["txt"]).decode("utf-8-sig")
            except ValueError as error:
                rejected.append((f"{path} {key}", f"captions cannot be read: {error}"))
                continue
            yield Record(f"{path} {key}", {**cells, "image": f"{path}/{images[0]}"})
    finally:
        source.close()


def _object(content: bytes) -> dict[str, Any]:
    value = json.loads(content)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _pictures(root: Path, path: str, rejected: Rejected) -> Iterator[Record]:  # noqa: ARG001
    """The rows of a Parquet file, with the paths of the pictures that it holds in place of their bytes."""
    try:
        check_is_file(root / path)
        with pq.ParquetFile(root / path) as table:
            schema = table.schema_arrow
            held = [name for name in schema.names if _holds_bytes(schema.field(name).type)]
            row = 0
            for batch in table.iter_batches(
                columns=[name for name in schema.names if name not in held], use_threads=False
            ):
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
