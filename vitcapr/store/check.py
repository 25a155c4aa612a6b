"""Whether a store is what its sealed manifest says, and which stores nothing refers to any more."""

import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import read_json, sha256_file
from vitcapr.formats.store_manifest import IDENTITIES, FeaturePart, read_sealed
from vitcapr.store.layout import CHECKSUMS, GROUP, STORE_NAME_LENGTH, ArrayLayout, checksum_path, chunk_path

MOST_BYTES = 64 * 2**20
"""What is read of the chunks of a store when it is opened."""
_RECENT_SECONDS = 3600.0


@dataclass(frozen=True)
class SealedFile:
    """A chunk file of a sealed store: its path, and the size and SHA-256 that it has to have."""

    array: str
    index: int
    path: Path
    size: int
    checksum: str

    def problem(self, content: bool = True) -> str | None:
        """What is wrong with the file, which is read whole or, without ``content``, not at all; None if it is sound."""
        if not self.path.is_file():
            return "is missing"
        if self.path.stat().st_size != self.size:
            return f"has {self.path.stat().st_size} bytes instead of {self.size}"
        sound = not content or sha256_file(self.path) == self.checksum
        return None if sound else "is damaged: its content is not what was sealed"


def sealed_chunks(manifest: Mapping[str, Any], group: Path) -> list[SealedFile]:
    """The chunks that a store has; a partial one does not have all."""
    files = []
    for name, array in manifest["arrays"].items():
        layout = ArrayLayout(tuple(array["shape"]), manifest["chunk"], array["dtype"], ())
        files += [
            SealedFile(name, index, chunk_path(group / name, index, len(layout.shape)), layout.chunk_bytes, digest)
            for index, digest in enumerate(array["checksums"])
            if digest is not None
        ]
    return files


def check_store(manifest: Mapping[str, Any], group: Path, where: Path) -> None:
    """Compare Zarr metadata, the sizes of all chunks and the content of some with the manifest, at a small cost.

    Up to ``MOST_BYTES`` of the chunks are read, others in every call, so that damage which one stage misses is found by
    a later one. A small store is read whole.

    Raises:
        UserError: the store is not what was sealed.
    """
    _check_metadata(manifest, group, where)
    files = sealed_chunks(manifest, group)
    random.Random().shuffle(files)
    left = MOST_BYTES
    for file in files:
        if problem := file.problem(content=left > 0):
            what = f"chunk {file.index} of '{file.array}' {problem}"
            raise UserError(what, where=file.path, remedy=repair(file.array))
        left -= file.size


def _check_metadata(manifest: Mapping[str, Any], group: Path, where: Path) -> None:
    try:
        attributes = read_json(group / "zarr.json")["attributes"]
        layouts = {
            name: ArrayLayout.from_metadata(read_json(group / name / "zarr.json")) for name in manifest["arrays"]
        }
    except (KeyError, TypeError, ValueError, IndexError) as error:
        remedy = "make the store again, or pull it again"
        raise UserError(f"not the Zarr metadata of a feature store: {error!r}", where=group, remedy=remedy) from error
    differing = []
    if attributes.get("fingerprint") != manifest["fingerprint"]:
        differing.append("its fingerprint")
    if attributes != manifest["attributes"] or attributes.get("grid") != manifest.get("grid"):
        differing.append("its attributes")
    for name, array in manifest["arrays"].items():
        layout = layouts[name]
        if (list(layout.shape), layout.dtype, layout.chunk) != (array["shape"], array["dtype"], manifest["chunk"]):
            differing.append(f"shape, type or chunk of '{name}'")
    if differing:
        what = f"the manifest is not that of the store: {', '.join(differing)} differ from {group}"
        again = _again(next(iter(manifest["arrays"]), ""))
        raise UserError(what, where=where, remedy=f"{again} writes both again; pull a pulled store again")


def repair(array: str) -> str:
    """What to do about a damaged array of that name."""
    return (
        "see what else is damaged with vitcapr features verify, delete it, and run "
        f"{_again(array)}: only what is missing is computed again; pull a pulled store again"
    )


def _again(array: str) -> str:
    captions = array in ("text", "caption_id")
    return f"snakemake --forcerun {'extract_text --until extract_text' if captions else 'extract --until seal'}"


def all_files(manifest_path: Path) -> Iterator[tuple[SealedFile, Path | None]]:
    """Every chunk file of a sealed store and the table of ids, each with the record that has to go with the file for
    extraction to compute it again. Extraction writes the ids with any chunk, so theirs is the record of the first.
    """
    manifest = read_sealed(manifest_path)
    group = (manifest_path.parent / manifest["store"]).resolve()
    identity = next(name for name in IDENTITIES if name in manifest)
    ids = manifest[identity]
    table = chunk_path(group / identity, 0, 2)
    table_of_ids = SealedFile(identity, 0, table, ids["shape"][0] * ids["shape"][1], ids["checksum"])
    recorded = (group.parent / CHECKSUMS).is_dir()
    for file in [*sealed_chunks(manifest, group), table_of_ids]:
        yield file, checksum_path(group.parent, file.index) if recorded else None


@dataclass(frozen=True)
class UnusedStore:
    """A store without a sealed manifest or a finished task that belongs to it.

    Attributes:
        size: in bytes.
        chunks: how many are finished.
        recent: it was written to within the last hour, so an extraction may be filling it now.
    """

    path: Path
    size: int
    chunks: int
    recent: bool


def unused_stores(results: Path) -> list[UnusedStore]:
    """The stores in ``results/stores`` that no ``results/*/features/*`` or ``results/*/text_features/*`` refers to, by
    name. Folders that are not stores, and links, are left out.
    """
    used = set()
    for kind in ("features", "text_features"):
        for sealed in results.glob(f"*/{kind}/*/manifest.json"):
            used.add((sealed.parent / read_sealed(sealed)["store"]).resolve().parent.name)
    for part in results.glob("*/features/*/parts/*.json"):
        used.add(FeaturePart.read(part).fingerprint[:STORE_NAME_LENGTH])
    root = results / "stores"
    if not root.resolve().is_relative_to(results.resolve()):
        return []
    unused = []
    for path in sorted(root.glob("*")):
        if path.is_symlink() or not (path / GROUP).is_dir() or path.name in used:
            continue
        states = [(file.is_file(), file.stat()) for file in [path, *path.rglob("*")]]
        size, newest = sum(state.st_size for is_file, state in states if is_file), max(s.st_mtime for _, s in states)
        finished = sum(1 for _ in (path / CHECKSUMS).glob("[0-9]*.json"))
        unused.append(UnusedStore(path, size, finished, time.time() - newest < _RECENT_SECONDS))
    return unused
