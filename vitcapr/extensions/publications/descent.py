"""The files that descend from a photograph: those that contain it, those derived from it, and copies elsewhere."""

import gzip
import io
import zipfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from vitcapr.errors import UserError
from vitcapr.extensions.publications.contents import DATA, read_log
from vitcapr.extensions.publications.store_rows import Items, find_rows
from vitcapr.files import sha256_file
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
        UserError: no data set of the results has one of the images, and no file has its id.
    """
    stores = stores_root(results)
    for image in images:
        known = find_images(image, results)
        for folder, items in known.items():
            for identifier in items.image_id:
                yield from _of_experiment(identifier, folder)
            for store in sorted(path.parent for path in stores.glob(f"*/{GROUP}")):
                if rows := find_rows(store, items)[1]:
                    how = f"its vector{'s' * (len(rows) > 1)}, row {', '.join(map(str, rows))}"
                    yield Descendant(CONTAINS, str(store), how)
        apart = {path.parent for path in results.glob(f"*/{RUNS}") if known} | {stores}
        others = [path for path in _files(results) if apart.isdisjoint(path.parents)]
        ids = {image, *(one for items in known.values() for one in items.image_id)}
        found = [path for path in others if mentions(path, ids)]
        yield from (Descendant(CONTAINS, str(path), "its id") for path in found)
        if not known and not found:
            what = f"no data set here has the image '{image}', and no file has its id"
            raise UserError(what, where=results, remedy="give its id or its file")


def find_images(image: str, results: Path) -> dict[Path, Items]:
    """Return the images with this id, or with the content of this file, by the experiment whose data set has them."""
    own = sha256_file(Path(image)) if Path(image).is_file() else ""
    known = dict[Path, Items]()
    for folder in (path.parent for path in sorted(results.glob(f"*/{RUNS}")) if (path.parent / DATA).is_file()):
        data = read_manifest(folder / DATA)
        table = data.image_table.read("image_id", "sha256")
        if ids := list(table["image_id"][(table["image_id"] == image) | (table["sha256"] == own)]):
            known[folder] = Items.of(ids, data)
    return known


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _of_experiment(image: str, folder: Path) -> Iterator[Descendant]:
    data: Manifest = read_manifest(folder / DATA)
    table = data.image_table.read("image_id", "path", "split").set_index("image_id")
    split, picture = str(table.at[image, "split"]), data.image_root / str(table.at[image, "path"])
    if picture.is_file():
        yield Descendant(CONTAINS, str(picture), "the photograph")
    derived = descending(Records(folder), split)
    for path in _files(folder):
        run = derived.get(path.relative_to(folder).as_posix())
        if mentions(path, [image]):
            yield Descendant(CONTAINS, str(path), f"its id, split {split}")
        elif run is not None:
            trained = "trained with it: " if run.stage.startswith("train_") else ""
            yield Descendant(DERIVED, str(path), f"{trained}{run.name}, {run.time[:10]}")
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


def mentions(path: Path, texts: Collection[str]) -> bool:
    """Return whether a file, compressed or not, contains one of the texts."""
    return any(text.encode() in part for part in decoded(path) for text in texts)


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
