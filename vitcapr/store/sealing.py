"""Sealing of a store: proof that every chunk is there, and one manifest from the parts of the tasks."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes, write_json
from vitcapr.formats.store_manifest import FORMAT, FeaturePart
from vitcapr.store.layout import Rows
from vitcapr.store.writer import StoreWriter, copied_rows, read_layouts, remove_partials, store_folder

_REMEDY = "run snakemake --forcerun extract --until seal: only what is missing is computed again"


def write_part(path: Path, fingerprint: str, writer: StoreWriter, chunks: range) -> None:
    """Write the part of a task: its range of chunks, all finished, and their checksums."""
    FeaturePart(fingerprint, (chunks.start, chunks.stop), writer.all_checksums(chunks)).write(path)


def seal(parts: Sequence[Path], stores: Path, images: Rows, output: Path) -> dict[str, Any]:
    """Check that the store of the parts is finished and holds these images, and write the sealed manifest.

    Args:
        parts: the ``part.json`` of every task, in any order.

    Returns:
        The sealed manifest.

    Raises:
        UserError: the parts are of several stores, or their store is gone, lacks a chunk or is of other images.
    """
    contents = [FeaturePart.read(path) for path in parts]
    if not contents:
        raise UserError("no part to seal", remedy="run the stage extract first")
    fingerprint = contents[0].fingerprint
    for path, part in zip(parts, contents, strict=True):
        if part.fingerprint != fingerprint:
            _refuse_parts(stores, {parts[0]: fingerprint, path: part.fingerprint})
    folder = store_folder(stores, fingerprint)
    writer = StoreWriter(folder, read_layouts(folder))
    if not writer.layouts or writer.attributes.get("fingerprint") != fingerprint:
        raise UserError("the store that the parts describe is gone", where=folder, remedy=_REMEDY)
    if writer.attributes.get("images_sha256") != images.sha256:
        raise UserError("the store holds other images than the manifest", where=folder, remedy=_REMEDY)
    for index in writer.chunks:
        if writer.checksums(index) is None:
            raise UserError(f"chunk {index} is missing or cut short", where=folder, remedy=_REMEDY)
    return write_sealed(writer, images.id_parts(), "image_id", output)


def _refuse_parts(stores: Path, fingerprints: Mapping[Path, str]) -> NoReturn:
    """Raise a UserError with the attributes in which the stores of two parts differ."""
    (first, one), (second, other) = (
        (path, StoreWriter(store_folder(stores, fingerprint), {}).attributes)
        for path, fingerprint in fingerprints.items()
    )
    names = [name for name in sorted({*one, *other} - {"fingerprint"}) if one.get(name) != other.get(name)]
    differences = ", ".join(f"{name} {str(one.get(name))[:40]} and {str(other.get(name))[:40]}" for name in names)
    remedy = _REMEDY
    if "dtype" in names:  # auto is another arithmetic on each generation of machines.
        remedy = "set dtype of the backbone to one of them, for all machines, and run the same command"
    what = f"the parts {first.name} and {second.name} come from different stores: {differences or 'one is gone'}"
    raise UserError(what, where=first, remedy=remedy)


def write_sealed(writer: StoreWriter, ids: Iterable[Collection[str]], identity: str, output: Path) -> dict[str, Any]:
    """Write the ids and the sealed manifest of a finished store, and remove what killed processes left in it.

    Args:
        ids: of all rows, in parts; ``identity`` is ``image_id`` or ``caption_id``.

    Returns:
        The sealed manifest.
    """
    remove_partials(writer.folder)
    checksums = writer.all_checksums(writer.chunks)
    table, attributes = writer.write_ids(ids, identity), writer.attributes
    manifest = {
        "format": FORMAT,
        "fingerprint": attributes["fingerprint"],
        "store": Path(os.path.relpath(writer.group.resolve(), output.parent.resolve())).as_posix(),
        "chunk": writer.size,
        "attributes": attributes,
        "arrays": {
            name: {"shape": list(layout.shape), "dtype": layout.dtype, "checksums": checksums[name]}
            for name, layout in writer.layouts.items()
        },
        identity: {"shape": list(table.shape), "checksum": sha256_bytes(table.tobytes())},
    }
    if "grid" in attributes:
        manifest["grid"] = attributes["grid"]
    if copied := copied_rows(writer.folder, writer.chunks):
        manifest["copied"] = copied
    write_json(output, manifest)
    return manifest
