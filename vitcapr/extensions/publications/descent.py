"""The files that descend from a photograph: those that contain it, those derived from it, and copies elsewhere."""

import gzip
import io
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vitcapr.errors import UserError
from vitcapr.experiment.copies import Copy, read_copies
from vitcapr.experiment.lineage import Records
from vitcapr.experiment.paths import stores_root
from vitcapr.extensions.publications.publication import DATA
from vitcapr.extensions.publications.store_rows import Items, find_rows
from vitcapr.files import sha256_file
from vitcapr.formats.containers import read_parquet
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.model import CARD
from vitcapr.pipeline.run_records import RUNS, Run
from vitcapr.store.layout import GROUP

CONTAINS, DERIVED, COPIED = "contains", "derived from", "copied elsewhere"
PHOTOGRAPH, VECTOR = "the photograph", "its vector, row"
_LEARNED = ("train", "validation")
"""Splits that train and select models."""


class Descendant(NamedTuple):
    """A file, a folder or an address that descends from an image, and how."""

    kind: str
    place: str
    how: str


def trace(image: str, results: Path) -> Iterator[Descendant]:
    """Yield what descends from an image: its id, or a file whose content is that of an image of a data set.

    Raises:
        UserError: no data set of the results has the image, and no file has its id.
    """
    known, ids, derived, copies = find_images(image, results), {image}, dict[Path, Run](), list[Copy]()
    rows = dict[Path, set[int]]()
    for folder, items in known.items():
        data, records = read_manifest(folder / DATA), Records(folder)
        rows[folder] = set(data.rows_of(list(items.image_id)).tolist())
        for _, each in data.images[data.images["image_id"].isin(list(items.image_id))].iterrows():
            ids.add(each["image_id"])
            derived |= {folder / place: run for place, run in descending(records, each["split"]).items()}
            if (picture := data.image_root / each["path"]).is_file():
                yield Descendant(CONTAINS, str(picture), PHOTOGRAPH)
        copies += (one for one in read_copies(folder) if Path(one.file).name != CARD or folder / one.file in derived)
    stores, found = stores_root(results), bool(known)
    for path in sorted(results.rglob("*")):
        if not path.is_file() or path.is_symlink() or stores in path.parents:
            continue
        if mentions(path, ids):
            found = True
            yield Descendant(CONTAINS, str(path), "its id")
        elif path in derived and (own := rows_in(path, rows[next(above for above in path.parents if above in rows)])):
            yield Descendant(CONTAINS, str(path), f"its numbers, row {', '.join(map(str, own))}")
        elif path in derived:
            trained = "trained with it: " if derived[path].stage.startswith("train_") else ""
            yield Descendant(DERIVED, str(path), f"{trained}{derived[path].name}, {derived[path].time[:10]}")
    if not found:
        what = f"no data set here has the image '{image}', and no file has its id"
        raise UserError(what, where=results, remedy="give its id or its file")
    for store in sorted(path.parent for path in stores.glob(f"*/{GROUP}")):
        if stored := sorted({row for items in known.values() for row in find_rows(store, items)[1]}):
            yield Descendant(CONTAINS, str(store), f"{VECTOR} {', '.join(map(str, stored))}")
            copies += read_copies(store)
    yield from (Descendant(COPIED, one.place, f"{one.file}, {one.time}, digest {one.digest[:16]}") for one in copies)


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


def descending(records: Records, split: str) -> dict[str, Run]:
    """Return the jobs that computed a file from a set with an image of ``split``, by the place of the file.

    A job of another split descends only through its other inputs, such as a model that was trained with the image.
    """
    found, size = dict[str, Run](), -1
    while size != len(found):
        size = len(found)
        for run in records.runs:
            places = {run.place(path) for path in run.inputs}
            splits = [run.values["split"]] if "split" in run.values else _LEARNED
            reads = DATA in places and split in splits
            if DATA in run.wrote or reads or not found.keys().isdisjoint(places - {DATA}):
                found |= dict.fromkeys(run.wrote, run)
    return found


def rows_in(path: Path, rows: Collection[int]) -> list[int]:
    """Return those of the rows of images that a file of arrays has: embeddings, attention or tokens."""
    if path.suffix != ".npz":
        return []
    with np.load(path, allow_pickle=False) as arrays:
        held = arrays["image_row"].tolist() if "image_row" in arrays.files else []
    return sorted({*rows} & {*held})


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
