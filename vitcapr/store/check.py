"""Whether a store is what its sealed manifest says, and which stores nothing refers to any more."""

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import DigestedFile, file_states, read_json, sha256_file
from vitcapr.formats.records import reading
from vitcapr.formats.store_manifest import IDENTITIES, FeaturePart, read_sealed
from vitcapr.store.layout import (
    CHECKSUMS,
    GROUP,
    STORE_NAME_LENGTH,
    TEXT,
    chunk_path,
    decode_ids,
    identity_in,
    layouts_in,
)
from vitcapr.store.writer import COPIED, StoreWriter

MOST_BYTES = 64 * 2**20
"""What is read of the chunks of a store when it is opened."""
_RECENT_SECONDS = 3600.0


def sealed_files(manifest: Mapping[str, Any], group: Path) -> dict[tuple[str, int], DigestedFile]:
    """The files of the chunks by array and number, after the table of ids, which is chunk 0 of ``image_id`` or
    ``caption_id``.

    Args:
        group: the Zarr group in which the files lie.
    """
    identity = identity_in(manifest)
    ids = manifest[identity]
    table = chunk_path(group / identity, 0, 2)
    files = {(identity, 0): DigestedFile(table, ids["shape"][0] * ids["shape"][1], ids["checksum"])}
    for name, layout in layouts_in(manifest).items():
        for index, digest in enumerate(manifest["arrays"][name]["checksums"]):
            path = chunk_path(group / name, index, len(layout.shape))
            files[name, index] = DigestedFile(path, layout.chunk_bytes, digest)
    return files


def own_digests(store: Path) -> dict[tuple[str, int], str]:
    """What a store itself says of its finished chunks, by array and number: in the manifest in its folder, or in the
    records of its chunks. Of the ids of its rows, their digest as they are."""
    own: dict[tuple[str, int], str] = {}
    if (store / "manifest.json").is_file() and (sealed := read_sealed(store / "manifest.json"))["store"] == GROUP:
        own = {key: file.sha256 for key, file in sealed_files(sealed, store / GROUP).items()}
    for path in sorted((store / CHECKSUMS).glob("[0-9]*.json")):
        with reading(path, "a record of checksums", "delete it, then extract or pull the store"):
            own |= {(name, int(path.stem)): digest for name, digest in read_json(path).items() if name != COPIED}
    for identity in IDENTITIES:
        if (table := chunk_path(store / GROUP / identity, 0, 2)).is_file():
            own.setdefault((identity, 0), sha256_file(table))
    return own


def read_ids(manifest: Mapping[str, Any], group: Path) -> list[str]:
    """The id of each row."""
    identity = identity_in(manifest)
    path = chunk_path(group / identity, 0, 2)
    try:
        return decode_ids(np.fromfile(path, np.uint8).reshape(manifest[identity]["shape"]))
    except ValueError as error:
        raise UserError("the ids of the store's rows are not text", where=path) from error


def check_store(manifest: Mapping[str, Any], group: Path, where: Path) -> None:
    """Compare Zarr metadata, the ids, the sizes of all chunks and the content of some with the manifest.

    Up to ``MOST_BYTES`` of the chunks are read, others in every call, so that damage which one stage misses is found by
    a later one. A small store is read whole.

    Raises:
        UserError: the store is not what was sealed.
    """
    if not group.is_dir():
        remedy = f"{compute_again(identity_in(manifest))} makes it again; pull a pulled store again"
        raise UserError("the feature store is gone", where=group, remedy=remedy)
    _check_metadata(manifest, group, where)
    table, *chunks = sealed_files(manifest, group).items()
    random.Random().shuffle(chunks)
    left = MOST_BYTES
    for (array, index), file in [table, *chunks]:
        if problem := file.problem(content=left > 0):
            raise UserError(f"chunk {index} of '{array}' {problem}", where=file.path, remedy=repair(array))
        left -= file.size if array != table[0][0] else 0


def _check_metadata(manifest: Mapping[str, Any], group: Path, where: Path) -> None:
    sealed = manifest["attributes"]
    differing = [
        f"'{name}'"
        for name, layout in layouts_in(manifest).items()
        if not layout.is_described_by(read_json(group / name / "zarr.json"))
    ]
    stated = (sealed.get("fingerprint"), sealed.get("grid"))
    own = StoreWriter(group.parent, {}).attributes
    if own != sealed or stated != (manifest["fingerprint"], manifest.get("grid")):
        differing.append("its attributes")
    if differing:
        what = f"the manifest is not that of the store: {', '.join(differing)} differ from {group}"
        again = compute_again(identity_in(manifest))
        raise UserError(what, where=where, remedy=f"{again} writes both again; pull a pulled store again")


def repair(array: str) -> str:
    """What to do about a damaged array of that name."""
    return (
        "see what else is damaged with vitcapr features verify, delete it, and run "
        f"{compute_again(array)}: only what is missing is computed again; pull a pulled store again"
    )


def compute_again(array: str) -> str:
    """The command that computes what a store lacks."""
    captions = array in (TEXT, "caption_id")
    return f"snakemake --forcerun {'extract_text --until extract_text' if captions else 'extract --until seal'}"


def lost_stores(experiment: Path) -> Iterator[tuple[Path, str]]:
    """The sealed manifests in the folder of an experiment whose store is gone, and the rules that make it again, as
    Snakemake's options; no rule makes an imported store."""
    rules = {"features": "extract --until seal", "text_features": "extract_text --until extract_text"}
    for kind, forced in {**rules, "pixels": "extract_pixels --until extract_pixels"}.items():
        for sealed in sorted(experiment.glob(f"{kind}/*/manifest.json")):
            with suppress(UserError):  # A damaged manifest is an error of the stages that read it.
                manifest = read_sealed(sealed)
                if not (sealed.parent / manifest["store"]).is_dir():
                    yield sealed, "" if "imported" in manifest["attributes"] else f"--forcerun {forced}"


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
    """The stores in ``results/stores`` that no sealed manifest of an experiment and no part refers to, by name. Folders
    that are not stores, and links, are left out.
    """
    used = set()
    for kind in ("features", "text_features", "pixels"):
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
        states = file_states(path.rglob("*")).values()
        size, newest = sum(state.st_size for state in states), max(s.st_mtime for s in [path.stat(), *states])
        finished = sum(1 for _ in (path / CHECKSUMS).glob("[0-9]*.json"))
        unused.append(UnusedStore(path, size, finished, time.time() - newest < _RECENT_SECONDS))
    return unused
