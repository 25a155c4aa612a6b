"""The files that descend from a photograph: those that contain it, those derived from it, and copies elsewhere."""

import gzip
import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vitcapr.errors import UserError
from vitcapr.extensions.publications.contents import DATA, read_log
from vitcapr.files import read_json, sha256_file
from vitcapr.formats.containers import read_parquet
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.pipeline.locations import stores_root
from vitcapr.pipeline.run_records import RUNS, Records, Run
from vitcapr.store.layout import GROUP

CONTAINS, DERIVED, COPIED = "contains", "derived from", "copied elsewhere"
_LEARNED = ("train", "validation")
"""Splits that train and select models."""


class Descendant(NamedTuple):
    """A file, a folder or an address that descends from an image, and how."""

    kind: str
    place: str
    how: str


def trace(images: Iterable[str], results: Path) -> Iterator[Descendant]:
    """Yield what descends from images: ids, or files whose content is that of an image of a data set.

    Raises:
        UserError: no data set of the results has one of the images.
    """
    experiments = [folder.parent for folder in sorted(results.glob(f"*/{RUNS}")) if (folder.parent / DATA).is_file()]
    data = {folder: read_manifest(folder / DATA) for folder in experiments}
    for image in images:
        known = {folder: ids for folder, one in data.items() if (ids := find_images(image, one))}
        if not known:
            raise UserError(
                f"no data set here has the image '{image}'", where=results, remedy="give its id or its file"
            )
        for folder, ids in known.items():
            for identifier in ids:
                yield from _of_experiment(identifier, folder, data[folder])
        yield from _of_stores({one for ids in known.values() for one in ids}, stores_root(results))


def find_images(image: str, data: Manifest) -> list[str]:
    """Return the ids of the images of a data set with this id, or with the content of this file."""
    table = data.image_table.read("image_id", "sha256")
    own = sha256_file(Path(image)) if Path(image).is_file() else ""
    return list(table["image_id"][(table["image_id"] == image) | (table["sha256"] == own)])


def _of_experiment(image: str, folder: Path, data: Manifest) -> Iterator[Descendant]:
    table = data.image_table.read("image_id", "path", "split").set_index("image_id")
    split, picture = str(table.at[image, "split"]), data.image_root / str(table.at[image, "path"])
    if picture.is_file():
        yield Descendant(CONTAINS, str(picture), "the photograph")
    derived = descending(Records(folder), split)
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()):
        run = derived.get(path.relative_to(folder).as_posix())
        if mentions(path, image):
            yield Descendant(CONTAINS, str(path), f"its id, split {split}")
        elif run is not None:
            yield Descendant(DERIVED, str(path), f"{run.name}, {run.time[:10]}")
    for entry in read_log(folder):
        yield Descendant(COPIED, entry["place"], f"published {entry['time']}, digest {entry['digest'][:16]}")


def descending(records: Records, split: str) -> dict[str, Run]:
    """Return the jobs that computed a file from a set with an image of ``split``, by the place of the file.

    A job of another split descends only through its other inputs, such as a model that was trained with the image.
    """
    found = dict[str, Run]()
    size = -1
    while size != len(found):
        size = len(found)
        for run in records.runs:
            places = {run.place(path) for path in run.inputs}
            data = DATA in places or DATA in run.wrote
            learns = data and split in _LEARNED and "split" not in run.values
            reads = data and run.values.get("split") == split
            if learns or reads or not found.keys().isdisjoint(places - {DATA}) or DATA in run.wrote:
                found |= dict.fromkeys(run.wrote, run)
    return found


def _of_stores(images: set[str], root: Path) -> Iterator[Descendant]:
    """Yield the stores that have a row of one of the images, with its number."""
    for group in sorted(root.glob(f"*/{GROUP}")):
        if (table := group / "image_id/c/0/0").is_file():
            shape = read_json(group / "image_id/zarr.json")["shape"]
            rows = np.fromfile(table, np.uint8).reshape(shape)
            ids = [row.tobytes().rstrip(b"\0").decode("utf-8", "replace") for row in rows]
            for image in sorted(images & set(ids)):
                yield Descendant(CONTAINS, str(group.parent), f"its vector, row {ids.index(image)}")


def mentions(path: Path, text: str) -> bool:
    """Return whether a file, compressed or not, contains a text."""
    return any(text.encode() in part for part in decoded(path))


def decoded(path: Path) -> Iterator[bytes]:
    """Yield the content of a file, and that of what is packed in it: zip, NumPy, gzip and Parquet."""
    content = path.read_bytes()
    yield content
    if content[:2] == b"\x1f\x8b":
        yield gzip.decompress(content)
    elif content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            yield from (packed.read(name) for name in packed.namelist())
    elif content[:4] == b"PAR1":
        table = read_parquet(path)
        yield "\n".join(str(value) for column in table.columns for value in column.to_pylist()).encode()
