"""The rows of stores that hold withdrawn images or their captions, and how they are overwritten."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vitcapr.files import read_json, sha256_bytes, write_bytes, write_json
from vitcapr.formats.containers import write_array
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.store_manifest import IDENTITIES
from vitcapr.progress import print_lines
from vitcapr.store.known_rows import ROWS, read_row_digests
from vitcapr.store.layout import GROUP, checksum_path, chunk_path, decode_ids
from vitcapr.store.writer import StoreWriter, claimed, read_layouts


@dataclass(frozen=True)
class Items:
    """Withdrawn images and their captions: the SHA-256 of each, of its file or of its words, by its id."""

    image_id: dict[str, str]
    caption_id: dict[str, str]

    @classmethod
    def of(cls, images: Collection[str], data: Manifest) -> "Items":
        table, captions = data.images.set_index("image_id"), data.captions
        own = captions[captions["image_id"].isin(list(images))].set_index("caption_id")["text"]
        words = {str(name): sha256_bytes(text.encode()) for name, text in own.items()}
        return cls({image: str(table.at[image, "sha256"]) for image in images}, words)


def find_rows(store: Path, items: Items) -> tuple[str, list[int]]:
    """Return the identity of a store and its rows of these items.

    A row is known by the digest of its image; in a store without digests, which another program made, by its id. A row
    of a caption is known by both, because other images may have the same words.
    """
    group, digests = store / GROUP, [row.tobytes().hex() for row in read_row_digests(store)]
    identity = next((name for name in IDENTITIES if chunk_path(group / name, 0, 2).is_file()), "image_id")
    own: dict[str, str] = getattr(items, identity)
    if identity == "image_id" and digests:
        return identity, [row for row, digest in enumerate(digests) if digest in own.values()]
    ids = decode_ids(_read_ids(group / identity))
    known = digests or [own.get(name, "") for name in ids]
    return identity, [row for row, name in enumerate(ids) if name in own and own[name] == known[row]]


def _read_ids(array: Path) -> "np.ndarray":
    path = chunk_path(array, 0, 2)
    if not path.is_file():
        return np.zeros((0, 1), np.uint8)
    return np.fromfile(path, np.uint8).reshape(read_json(array / "zarr.json")["shape"])


def erase_rows(store: Path, items: Items) -> Iterator[str]:
    """Overwrite the rows of these items with zeros, and their ids and digests; yield the bytes that are gone.

    A chunk is written anew and renamed, so that a hard link to it in another store is not changed: that store has the
    rows, too. The next run copies all other rows to a store without the image. An interrupted command can be repeated.
    """
    identity, rows = find_rows(store, items)
    if not rows:
        return
    writer = StoreWriter(store, read_layouts(store))
    with claimed(store, writer.chunks, print_lines):
        for chunk in sorted({row // writer.size for row in rows}):
            inside = [row % writer.size for row in rows if row // writer.size == chunk]
            digests = read_json(checksum_path(store, chunk)) if checksum_path(store, chunk).is_file() else {}
            for name, layout in writer.layouts.items():
                path = chunk_path(writer.group / name, chunk, len(layout.shape))
                if path.is_file():  # It is not, if the extraction was stopped.
                    content = np.fromfile(path, np.uint8).reshape(layout.chunk, -1)
                    content[inside] = 0
                    write_bytes(path, content.tobytes())
                    digests[name] = sha256_bytes(content.data)
                    width = content.shape[1]
                    yield from (f"{path}: bytes {row * width} to {(row + 1) * width}" for row in inside)
            write_json(checksum_path(store, chunk), digests)
        ids, table = _read_ids(writer.group / identity), chunk_path(writer.group / identity, 0, 2)
        if len(ids):
            ids[rows] = 0
            write_bytes(table, ids.tobytes())
            yield f"{table}: ids of rows {', '.join(map(str, rows))}"
        if len(known := np.array(read_row_digests(store))):
            known[rows] = 0
            write_array(store / ROWS, known)
