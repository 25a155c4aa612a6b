"""Whether a store is what its sealed manifest says, at a cost that no stage notices. ``verify`` reads all of it."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import read_json, sha256_file
from vitcapr.store.layout import ArrayLayout, chunk_path

MOST_BYTES = 64 * 2**20
"""What is read of the chunks of a store when it is opened."""


def repair(array: str) -> str:
    """What to do about a damaged array of that name."""
    return (
        "see what else is damaged with vitcapr features verify, delete it, and run "
        f"{_again(array)}: only what is missing is computed again; pull a pulled store again"
    )


def _again(array: str) -> str:
    captions = array in ("text", "caption_id")
    return f"snakemake --forcerun {'extract_text --until extract_text' if captions else 'extract --until seal'}"


def check_metadata(manifest: Mapping[str, Any], group: Path, where: Path) -> None:
    """Raises:
    UserError: the Zarr metadata of the store has other attributes, shapes or types than its manifest.
    """
    try:
        attributes = read_json(group / "zarr.json")["attributes"]
        found = {name: ArrayLayout.from_metadata(read_json(group / name / "zarr.json")) for name in manifest["arrays"]}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        remedy = "make the store again, or pull it again"
        raise UserError(f"not the Zarr metadata of a feature store: {error!r}", where=group, remedy=remedy) from error
    differing = []
    if attributes.get("fingerprint") != manifest["fingerprint"]:
        differing.append("its fingerprint")
    if attributes != manifest["attributes"] or attributes.get("grid") != manifest.get("grid"):
        differing.append("its attributes")
    for name, array in manifest["arrays"].items():
        layout = found[name]
        if (list(layout.shape), layout.dtype, layout.chunk) != (array["shape"], array["dtype"], manifest["chunk"]):
            differing.append(f"shape, type or chunk of '{name}'")
    if differing:
        what = f"the manifest is not that of the store: {', '.join(differing)} differ from {group}"
        again = _again(next(iter(manifest["arrays"]), ""))
        raise UserError(what, where=where, remedy=f"{again} writes both again; pull a pulled store again")


def check_sizes(manifest: Mapping[str, Any], group: Path) -> None:
    """Raises:
    UserError: a chunk file that was sealed is missing or has another size.
    """
    for name, array in manifest["arrays"].items():
        layout = ArrayLayout(tuple(array["shape"]), manifest["chunk"], array["dtype"], ())
        for index, digest in enumerate(array["checksums"]):
            if digest is None:  # A chunk that a partial store does not have.
                continue
            path = chunk_path(group / name, index, len(layout.shape))
            try:
                size = path.stat().st_size
            except FileNotFoundError as error:
                what = f"chunk {index} of '{name}' is missing from the feature store"
                raise UserError(what, where=path, remedy=repair(name)) from error
            if size != layout.chunk_bytes:
                what = f"chunk {index} of '{name}' has {size} bytes instead of {layout.chunk_bytes}"
                raise UserError(what, where=path, remedy=repair(name))


def check_sample(manifest: Mapping[str, Any], group: Path) -> None:
    """Read some chunks, up to ``MOST_BYTES``, and compare them with their checksums.

    Every call draws others, so that damage which one stage misses is found by a later one. A small store is read whole.

    Raises:
        UserError: a chunk is not what was sealed.
    """
    chunks = [
        (name, index, digest, chunk_path(group / name, index, len(array["shape"])))
        for name, array in manifest["arrays"].items()
        for index, digest in enumerate(array["checksums"])
        if digest is not None
    ]
    random.Random().shuffle(chunks)
    left = MOST_BYTES
    for name, index, digest, path in chunks:
        if sha256_file(path) != digest:
            what = f"chunk {index} of '{name}' is damaged: its content is not what was sealed"
            raise UserError(what, where=path, remedy=repair(name))
        left -= path.stat().st_size
        if left <= 0:
            return
