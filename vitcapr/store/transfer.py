"""Sealed stores that travel: to and from any place, every file compared with its checksum.

A store that travels is one folder, wherever it is::

    features.zarr/          the group, as in results/stores
    manifest.json           the seal, written last: without it there is no store yet

So a half-pushed store is not taken for a whole one, and a transfer continues with the files that are not there.
"""

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import DigestedFile, readable_json, write_json
from vitcapr.formats.store_manifest import SCALE, check_sealed, read_sealed
from vitcapr.progress import Reporter
from vitcapr.store.check import check_store, read_ids, sealed_files
from vitcapr.store.layout import GROUP, checksum_path, identity_in, layouts_in
from vitcapr.store.remote_folder import MOST_OF_A_LIST, RemoteFolder
from vitcapr.store.writer import StoreWriter, claimed

MANIFEST = "manifest.json"
_MOST_OF_METADATA = 2**20
_MOST_OF_A_FILE = 2**31
"""Bytes of a chunk, and of the table of ids."""


@dataclass(frozen=True)
class RemoteStore:
    """A sealed store in a place. ``manifest`` is the sealed one, checked."""

    place: RemoteFolder
    manifest: Mapping[str, Any]


def find_remote(place: RemoteFolder) -> RemoteStore:
    """The sealed store in ``place``, wherever its manifest says that the group is."""
    try:
        content = json.loads(place.read(MANIFEST, MOST_OF_A_LIST))
    except FileNotFoundError as error:
        what, remedy = "no manifest.json there", "check the address, or wait until the store is pushed whole"
        raise UserError(what, where=place.url, remedy=remedy) from error
    except (ValueError, RecursionError) as error:
        raise UserError("its manifest.json is not JSON", where=place.url) from error
    check_sealed(content, place.url)
    for (array, _), file in sealed_files(content, Path()).items():
        if file.size > _MOST_OF_A_FILE:
            what = f"a chunk of '{array}' would have {file.size} bytes, more than {_MOST_OF_A_FILE}"
            raise UserError(what, where=place.url)
    return RemoteStore(place, content)


def push(sealed: Path, place: RemoteFolder, report: Reporter) -> None:
    """Copy the sealed store to ``place``; files that are there with their size are not sent again.

    Raises:
        UserError: the place cannot be written or holds another store, or the store here is partial or damaged.
    """
    manifest = read_sealed(sealed)
    if manifest.get("partial"):
        raise UserError("the store is incomplete", where=sealed, remedy="pull all of it before it is pushed on")
    group = (sealed.parent / manifest["store"]).resolve()
    check_store(manifest, group, sealed)
    with suppress(FileNotFoundError):
        if f'"{manifest["fingerprint"]}"'.encode() not in place.read(f"{GROUP}/zarr.json", _MOST_OF_METADATA):
            raise UserError("another store is there", where=place.url, remedy="push to a folder of its own")
    metadata = [group / "zarr.json", *(group / name / "zarr.json" for name in layouts_in(manifest))]
    metadata.append(group / identity_in(manifest) / "zarr.json")
    files = [*map(DigestedFile.at, metadata), *sealed_files(manifest, group).values()]
    seal = readable_json({**manifest, "store": GROUP}).encode()
    place.push({_name(GROUP, file, group): file for file in files}, MANIFEST, seal, report)


def pull(remote: RemoteStore, folder: Path, report: Reporter, arrays: Collection[str] | None = None) -> Path:
    """Copy the store, or some of its arrays, into ``folder``; files that are there are not fetched.

    Extraction can use and continue a whole store. A part carries no record of finished chunks, so that extraction never
    takes it for more than it is; what was pulled to ``folder`` before stays part of it.

    Args:
        arrays: their names; None for all. An int8 array brings its scales.

    Returns:
        The path of the manifest.
    """
    place, sealed, layouts = remote.place, remote.manifest, layouts_in(remote.manifest)
    chunks = StoreWriter(folder, layouts).chunks
    identity, fingerprint = identity_in(sealed), sealed["fingerprint"]
    chosen = _choose(remote, layouts if arrays is None else arrays)
    with claimed(folder, chunks, report.line):
        if StoreWriter(folder, {}).attributes.get("fingerprint", fingerprint) != fingerprint:
            raise UserError("another store is there", where=folder, remedy="pull to another folder")
        if (folder / MANIFEST).is_file():
            chosen |= read_sealed(folder / MANIFEST)["arrays"].keys() & layouts.keys()
        writer = StoreWriter(folder, {name: layout for name, layout in layouts.items() if name in chosen})
        files = sealed_files(sealed, writer.group)
        wanted = {
            _name(sealed["store"], files[key], writer.group): files[key]
            for key in files
            if key[0] in {identity, *chosen}
        }
        place.pull(wanted, report)
        writer.begin(sealed["attributes"])
        writer.write_ids([read_ids(sealed, writer.group)], identity)
        manifest = {**sealed, "attributes": writer.attributes, "store": GROUP}
        if chosen != layouts.keys() or sealed.get("partial"):
            manifest |= {"partial": True, "arrays": {name: sealed["arrays"][name] for name in sorted(chosen)}}
        else:
            for index in chunks:
                digests = {name: array["checksums"][index] for name, array in sealed["arrays"].items()}
                write_json(checksum_path(folder, index), digests)
        write_json(folder / MANIFEST, manifest)
    return folder / MANIFEST


def _choose(remote: RemoteStore, arrays: Collection[str]) -> set[str]:
    present = remote.manifest["arrays"]
    for name in arrays:
        if name not in present:
            remedy = f"it has {', '.join(present)}"
            raise UserError(f"the store has no array '{name}'", where=remote.place.url, remedy=remedy)
    return {name for name in present if name.removesuffix(SCALE) in arrays or name in arrays}


def _name(store: str, file: DigestedFile, group: Path) -> str:
    """The name in a place, where the group is ``store``, of a file of the group here."""
    return f"{store}/{file.path.relative_to(group).as_posix()}"
