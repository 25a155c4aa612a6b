"""From the tasks' parts to one sealed manifest: proof that every chunk is there and is what was computed."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import read_json, sha256_file
from vitcapr.formats import store_manifest
from vitcapr.formats.store_manifest import FORMAT, FeaturePart
from vitcapr.store.layout import GROUP, ArrayLayout, chunk_path, encode_ids
from vitcapr.store.writer import (
    StoreWriter,
    copied_rows,
    finished,
    read_layouts,
    remove_partials,
    store_folder,
)

_REMEDY = "run snakemake --forcerun extract --until seal: only what is missing is computed again"


def write_part(path: Path, fingerprint: str, writer: StoreWriter, chunks: range) -> None:
    """What one task did: its range of chunks, all finished, and their checksums."""
    FeaturePart(fingerprint, (chunks.start, chunks.stop), writer.all_checksums(chunks)).write(path)


def seal(parts: Sequence[Path], stores: Path, image_ids: Sequence[str], output: Path) -> dict[str, Any]:
    """Check the parts against each other and the store, and write the sealed manifest.

    Args:
        parts: the ``part.json`` of every task, in any order.
        image_ids: the data set's, in row order.

    Returns:
        What was written.

    Raises:
        UserError: parts disagree, do not cover the store, or a chunk is missing, cut short or not the one recorded.
    """
    contents = sorted((FeaturePart.read(path) for path in parts), key=lambda part: part.chunks)
    if not contents:
        raise UserError("no part to seal", remedy="run the stage extract first")
    prints = {part.fingerprint for part in contents}
    if len(prints) > 1:
        raise UserError("the parts come from different settings, code or images", where=parts[0], remedy=_REMEDY)
    fingerprint = contents[0].fingerprint
    folder = store_folder(stores, fingerprint)
    group = folder / GROUP
    layouts = read_layouts(folder)
    if layouts is None:
        raise UserError("the store that the parts describe is gone", where=group, remedy=_REMEDY)
    attributes = read_json(group / "zarr.json")["attributes"]
    if attributes.get("fingerprint") != fingerprint:
        raise UserError("the store is not the one that the parts describe", where=group, remedy=_REMEDY)

    first = next(iter(layouts.values()))
    ids = encode_ids(image_ids)
    id_path = chunk_path(group / "image_id", 0, 2)
    if first.shape[0] != len(image_ids) or not id_path.is_file() or id_path.read_bytes() != ids.tobytes():
        raise UserError("the store holds other images than the manifest", where=group, remedy=_REMEDY)

    checksums = _joined(contents, -(-first.shape[0] // first.chunk), parts[0])
    for index in range(-(-first.shape[0] // first.chunk)):
        if finished(folder, layouts, index) != {name: digests[index] for name, digests in checksums.items()}:
            what = f"chunk {index} is missing, cut short, or not the one that its task wrote"
            raise UserError(what, where=group, remedy=_REMEDY)
    return write_sealed(StoreWriter(folder, layouts), checksums, "image_id", output)


def write_sealed(
    writer: StoreWriter,
    checksums: Mapping[str, list[str]],
    identity: str,
    output: Path,
) -> dict[str, Any]:
    """Write the sealed manifest of a finished store, and remove what killed processes left in it.

    Args:
        checksums: of every chunk, for each array.
        identity: the one of ``layout.IDENTITIES`` that the store was begun with.

    Returns:
        What was written.
    """
    remove_partials(writer.folder)
    id_path = chunk_path(writer.group / identity, 0, 2)
    attributes = writer.attributes
    id_layout = ArrayLayout.from_metadata(read_json(writer.group / identity / "zarr.json"))
    manifest = {
        "format": FORMAT,
        "fingerprint": attributes["fingerprint"],
        "store": Path(os.path.relpath(writer.group.resolve(), output.parent.resolve())).as_posix(),
        "chunk": next(iter(writer.layouts.values())).chunk,
        "attributes": attributes,
        "arrays": {
            name: {"shape": list(layout.shape), "dtype": layout.dtype, "checksums": checksums[name]}
            for name, layout in writer.layouts.items()
        },
        identity: {"shape": list(id_layout.shape), "checksum": sha256_file(id_path)},
    }
    if "grid" in attributes:
        manifest["grid"] = attributes["grid"]
    if copied := copied_rows(writer.folder, range(len(next(iter(checksums.values()))))):
        manifest["copied"] = copied
    store_manifest.write_sealed(output, manifest)
    return manifest


def _joined(parts: Sequence[FeaturePart], chunks: int, where: Path) -> dict[str, list[str]]:
    """The checksums of all chunks, from parts in chunk order that must follow on each other without gap or overlap."""
    joined: dict[str, list[str]] = {name: [] for name in parts[0].checksums}
    at = 0
    for part in parts:
        start, stop = part.chunks
        if start != at:
            raise UserError(f"the parts leave a gap or overlap at chunk {min(start, at)}", where=where, remedy=_REMEDY)
        at = stop
        for name, digests in part.checksums.items():
            joined[name] += digests
    if at != chunks:
        raise UserError(f"the parts cover {at} of {chunks} chunks", where=where, remedy=_REMEDY)
    return joined
