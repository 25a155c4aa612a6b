"""Whether a store is what its sealed manifest says, and which stores nothing refers to any more."""

import random
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import DigestedFile, read_json, sha256_file
from vitcapr.formats.records import reading
from vitcapr.formats.store_manifest import IDENTITIES, FeaturePart, read_sealed, store_group
from vitcapr.store.layout import (
    CHECKSUMS,
    GROUP,
    PIXELS,
    STORE_NAME_LENGTH,
    TEXT,
    chunk_path,
    decode_ids,
    identity_in,
    layouts_in,
)
from vitcapr.store.writer import COPIED, StoreWriter

MOST_BYTES = 64 * 2**20
"""Bytes of chunks that are read and compared when a store is opened."""
_FOLDERS = ("features", "pixels", "text_features")
"""Folders of an experiment that hold a folder for each store."""


def sealed_files(manifest: Mapping[str, Any], group: Path) -> dict[tuple[str, int], DigestedFile]:
    """Return the files of the chunks in a Zarr group by array and number, after the table of ids.

    That table is chunk 0 of ``image_id`` or ``caption_id``.
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
    """Return the digests that a store records of its finished chunks, by array and number.

    They are in the manifest in its folder, or in the records of its chunks. The ids of its rows are digested as they
    are.
    """
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
    """Return the id of each row."""
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
        raise UserError("the feature store is gone", where=group, remedy=compute_again(manifest["arrays"]))
    _check_metadata(manifest, group, where)
    table, *chunks = sealed_files(manifest, group).items()
    random.Random().shuffle(chunks)
    left = MOST_BYTES
    for (array, index), file in [table, *chunks]:
        if problem := file.problem(content=left > 0):
            raise UserError(f"chunk {index} of '{array}' {problem}", where=file.path, remedy=repair(manifest["arrays"]))
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
        raise UserError(what, where=where, remedy=compute_again(manifest["arrays"]))


def repair(arrays: Collection[str]) -> str:
    """Return the remedy for a damaged store of these arrays."""
    return f"see what else is damaged with vitcapr features verify, delete it, and {compute_again(arrays)}"


def compute_again(arrays: Collection[str]) -> str:
    """Return the command that completes a store of these arrays."""
    return f"run snakemake {_forced(arrays)}: only what is missing is computed again; pull a pulled store again"


def _forced(arrays: Collection[str]) -> str:
    """Snakemake's options that compute what a store of these arrays lacks."""
    rule = "extract_text" if TEXT in arrays else "extract_pixels" if PIXELS in arrays else "extract"
    return f"--forcerun {rule} --until {'seal' if rule == 'extract' else rule}"


def lost_stores(experiment: Path) -> Iterator[tuple[Path, str]]:
    """Yield sealed manifests of an experiment whose store is gone, and Snakemake's option that makes it again.

    No rule makes an imported store.
    """
    for sealed in sorted(path for kind in _FOLDERS for path in experiment.glob(f"{kind}/*/manifest.json")):
        with suppress(UserError):  # A damaged manifest is an error of the stages that read it.
            manifest = read_sealed(sealed)
            if not store_group(sealed, manifest).is_dir():
                yield sealed, "" if "imported" in manifest["attributes"] else _forced(manifest["arrays"])


def unused_stores(results: Path) -> list[Path]:
    """Return the stores in ``results/stores`` that no sealed manifest and no part refers to, by name.

    Folders that are not stores, and links, are left out.
    """
    manifests = [path for kind in _FOLDERS for path in results.glob(f"*/{kind}/*/manifest.json")]
    used = {store_group(sealed, read_sealed(sealed)).parent.name for sealed in manifests}
    for part in results.glob("*/features/*/parts/*.json"):
        used.add(FeaturePart.read(part).fingerprint[:STORE_NAME_LENGTH])
    root = results / "stores"
    if not root.resolve().is_relative_to(results.resolve()):
        return []
    stores = sorted(path for path in root.glob("*") if (path / GROUP).is_dir() and not path.is_symlink())
    return [path for path in stores if path.name not in used]
