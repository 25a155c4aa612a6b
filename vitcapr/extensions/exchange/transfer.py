"""Sealed stores that travel: to and from any place, every file compared with its checksum.

A store that travels is one folder, wherever it is::

    features.zarr/          the group, as in results/stores
    audit.json              what an audit stated, if there was one
    manifest.json           the seal, written last: without it there is no store yet

So a half-pushed store is not taken for a whole one, and a transfer continues with the files that are not there.
"""

import json
import posixpath
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import DigestedFile, readable_json, sha256_bytes, write_bytes, write_json
from vitcapr.formats.audit_files import AUDIT, find_audit
from vitcapr.formats.records import reading
from vitcapr.formats.store_manifest import SCALE, check_sealed, read_sealed, store_group
from vitcapr.progress import Reporter
from vitcapr.store.check import check_store, own_digests, sealed_files
from vitcapr.store.layout import GROUP, ArrayLayout, checksum_path, decode_ids, encode_ids, identity_in, layouts_in
from vitcapr.store.remote_folder import MOST_OF_A_LIST, RemoteFolder
from vitcapr.store.writer import TERMS, StoreWriter, claimed, read_layouts, remove_partials

MANIFEST = "manifest.json"
_MOST_OF_METADATA = 2**20
_MOST_OF_A_FILE = 2**31
"""Bytes of a chunk, and of the table of ids."""


def find_remote(place: RemoteFolder) -> dict[str, Any]:
    """Return the sealed manifest of the store in ``place``, checked; the group is wherever it says."""
    manifest = _read_manifest(place)
    if manifest is None:
        what, remedy = "no manifest.json there", "check the address, or wait until the store is pushed whole"
        raise UserError(what, where=place.url, remedy=remedy)
    for (array, _), file in sealed_files(manifest, Path()).items():
        if file.size > _MOST_OF_A_FILE:
            what = f"a chunk of '{array}' would have {file.size} bytes, more than {_MOST_OF_A_FILE}"
            raise UserError(what, where=place.url)
    return manifest


def _read_manifest(place: RemoteFolder) -> dict[str, Any] | None:
    """Return the sealed manifest in ``place``, if one is there."""
    try:
        content = json.loads(place.read(MANIFEST, MOST_OF_A_LIST))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise UserError("its manifest.json is not JSON", where=place.url) from error
    return check_sealed(content, place.url)


def push(sealed: Path, place: RemoteFolder, report: Reporter) -> str:
    """Copy the sealed store to ``place``; files that are there with their size are not sent again.

    Returns:
        How many of these were compared with their checksums, as :meth:`RemoteFolder.push` says it.

    Raises:
        UserError: the place cannot be written or holds another store, or the store here is partial or damaged.
    """
    manifest = read_sealed(sealed)
    if manifest.get("partial"):
        raise UserError("the store is incomplete", where=sealed, remedy="pull all of it before it is pushed on")
    group = store_group(sealed, manifest)
    check_store(manifest, group, sealed)
    if there := _read_manifest(place):
        own = {key: file.sha256 for key, file in sealed_files(there, Path()).items()}
        _refuse_other(own, there["attributes"], layouts_in(there), manifest, place.url)
    with suppress(FileNotFoundError):
        if f'"{manifest["fingerprint"]}"'.encode() not in place.read(f"{GROUP}/zarr.json", _MOST_OF_METADATA):
            raise UserError("another store is there", where=place.url, remedy="push to a folder of its own")
    metadata = [group / "zarr.json", *(group / name / "zarr.json" for name in layouts_in(manifest))]
    metadata.append(group / identity_in(manifest) / "zarr.json")
    files = [*map(DigestedFile.at, metadata), *sealed_files(manifest, group).values()]
    last = {MANIFEST: readable_json({**manifest, "store": GROUP}).encode()}
    if find_audit(group.parent, manifest):
        last = {AUDIT: (group.parent / AUDIT).read_bytes(), **last}
    return place.push({_name(GROUP, file, group): file for file in files}, last, report)


def verify_remote(place: RemoteFolder, report: Reporter) -> tuple[dict[str, str], Mapping[str, DigestedFile]]:
    """Read every chunk of the store in ``place``. Returns what is wrong with files, and all files, by name."""
    manifest = find_remote(place)
    files = {_name(manifest["store"], file, Path()): file for file in sealed_files(manifest, Path()).values()}
    return place.problems(files, report)[0], files


def pull(
    place: RemoteFolder,
    sealed: Mapping[str, Any],
    folder: Path,
    report: Reporter,
    arrays: Collection[str] | None = None,
) -> Path:
    """Copy the store in ``place``, or some of its arrays, into ``folder``; files that are there are not fetched.

    Extraction can use and continue a whole store. A part carries no record of finished chunks, so that extraction never
    takes it for more than it is; what was pulled to ``folder`` before stays part of it.

    Args:
        sealed: the manifest, from :func:`find_remote`.
        arrays: their names; None for all. An int8 array brings its scales.

    Returns:
        The path of the manifest.
    """
    layouts, identity = layouts_in(sealed), identity_in(sealed)
    chunks, names = StoreWriter(folder, layouts).chunks, layouts if arrays is None else arrays
    if unknown := [name for name in names if name not in layouts]:
        remedy = f"it has {', '.join(layouts)}"
        raise UserError(f"the store has no array '{unknown[0]}'", where=place.url, remedy=remedy)
    chosen = {name for name in layouts if name.removesuffix(SCALE) in names or name in names}
    ids = _ids(place, sealed, folder)
    remove_partials(folder)
    with claimed(folder, chunks, report.line):
        _refuse_other(own_digests(folder), StoreWriter(folder, {}).attributes, read_layouts(folder), sealed, folder)
        if (folder / MANIFEST).is_file():
            here = read_sealed(folder / MANIFEST)
            if here["store"] != GROUP:
                what, remedy = "the manifest of a store elsewhere is there", "pull to another folder"
                raise UserError(what, where=folder, remedy=remedy)
            chosen |= here["arrays"].keys()
        writer = StoreWriter(folder, {name: layout for name, layout in layouts.items() if name in chosen})
        files = sealed_files(sealed, writer.group)
        missing = [file for (name, _), file in files.items() if name in chosen]
        place.pull({_name(sealed["store"], file, writer.group): file for file in missing}, report)
        writer.begin(sealed["attributes"])
        writer.write_ids([ids], identity)
        manifest = {**sealed, "attributes": writer.attributes, "store": GROUP}
        if chosen != layouts.keys() or sealed.get("partial"):
            manifest |= {"partial": True, "arrays": {name: sealed["arrays"][name] for name in sorted(chosen)}}
        else:
            for index in chunks:
                digests = {name: array["checksums"][index] for name, array in sealed["arrays"].items()}
                write_json(checksum_path(folder, index), digests)
        _pull_audit(place, sealed, folder, report)
        write_json(folder / MANIFEST, manifest)
    return folder / MANIFEST


def _pull_audit(place: RemoteFolder, sealed: Mapping[str, Any], folder: Path, report: Reporter) -> None:
    """Copy the audit of the store, if there is one of these bytes there and none here."""
    name = posixpath.join(posixpath.dirname(sealed["store"]), AUDIT)
    try:
        with suppress(FileNotFoundError), tempfile.TemporaryDirectory() as temporary:
            write_bytes(Path(temporary) / AUDIT, place.read(name, _MOST_OF_METADATA))
            if not (folder / AUDIT).exists() and (audit := find_audit(Path(temporary), sealed)):
                audit.write(folder / AUDIT)
    except UserError as error:
        report.line(f"the store's audit is left out: {error}")


def _ids(place: RemoteFolder, sealed: Mapping[str, Any], folder: Path) -> list[str]:
    """Return the ids of the rows, checked before anything is written."""
    identity = identity_in(sealed)
    file = sealed_files(sealed, folder / GROUP)[identity, 0]
    name = _name(sealed["store"], file, folder / GROUP)
    with reading(f"{place.url}: {name}", "the ids of the rows", "push the store from a sound copy"):
        content = place.read(name, file.size) if file.problem() else file.path.read_bytes()
        if sha256_bytes(content) != file.sha256:
            raise ValueError("it does not have its checksum")
        table = np.frombuffer(content, np.uint8).reshape(sealed[identity]["shape"])
        ids = decode_ids(table)
        if len(set(ids)) != len(ids) or not all(ids) or not np.array_equal(encode_ids([ids]), table):
            raise ValueError("an id is empty or there twice, or the table is not encoded as ours")
        return ids


def _refuse_other(
    own: Mapping[tuple[str, int], str],
    attributes: Mapping[str, Any],
    layouts: Mapping[str, ArrayLayout],
    new: Mapping[str, Any],
    where: object,
) -> None:
    """Raise a UserError if a store is not the one that would be written over it.

    Args:
        own: the digests of its finished chunks and of its ids.
    """
    remedy = "choose another folder"
    if attributes.get("fingerprint", new["fingerprint"]) != new["fingerprint"]:
        raise UserError("another store is there", where=where, remedy=remedy)
    same_recipe = not attributes or {**attributes, TERMS: None} == {**new["attributes"], TERMS: None}
    differences = [] if same_recipe else ["its attributes differ"]
    differences += [f"it has '{name}'" for name, _ in own if name not in {*new["arrays"], identity_in(new)}]
    for name, layout in layouts_in(new).items():
        old = layouts.get(name, layout)
        if (old.shape, old.chunk, old.dtype) != (layout.shape, layout.chunk, layout.dtype):
            differences.append(f"'{name}' is {old.dtype} of shape {list(old.shape)}, {old.chunk} rows in a chunk")
    for (name, index), file in sealed_files(new, Path()).items():
        if own.get((name, index), file.sha256) != file.sha256:
            differences.append(f"chunk {index} of '{name}' differs")
    if differences:
        what = f"a store of this fingerprint is there, and {differences[0]}; it is not written over"
        raise UserError(what, where=where, remedy=remedy)


def _name(store: str, file: DigestedFile, group: Path) -> str:
    """Return the name in a place, where the group is ``store``, of a file of the group here."""
    return f"{store}/{file.path.relative_to(group).as_posix()}"
