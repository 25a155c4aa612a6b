"""A publication as an experiment that stages can read, in a scratch folder, and checks of its files on each other.

The rows of a store go to their old places; other rows are holes in sparse files, which take no room on the disk.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.extensions.publications.contents import DATA, EXPERIMENT, ROWS, Publication
from vitcapr.extensions.publications.publishing import scored_rows
from vitcapr.files import canonical_json, read_json, sha256_bytes, sha256_file, write_json
from vitcapr.formats.containers import read_array
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.formats.model import CARD, WEIGHTS
from vitcapr.formats.store_manifest import FORMAT, read_sealed
from vitcapr.pipeline.run_records import Records
from vitcapr.store.layout import GROUP, ArrayLayout, chunk_path, identity_in, layouts_in
from vitcapr.store.writer import TERMS, StoreWriter, fingerprint_of

_NOT_COUNTED = ("fingerprint", TERMS, "grid", "cls_is")
"""Attributes of a store that its fingerprint does not cover."""
_CUT_DOWN = {DATA, "data/captions.parquet", "data/objects.parquet"}


def check_data(folder: Path) -> Iterator[str]:
    """Yield the faults of the data set: its images against the digest and the counts of its manifest."""
    manifest, images = read_json(folder / DATA), read_manifest(folder / DATA).images
    rows = canonical_json(images[["image_id", "sha256"]].to_numpy().tolist())
    if sha256_bytes(rows.encode()) != manifest["contents"]["images"]:
        yield "data/images.parquet: these are not the images that data/manifest.json has the digest of"
    for split, count in manifest["counts"]["splits"].items():
        if (listed := int((images["split"] == split).sum())) != count:
            yield f"data/images.parquet: {listed} images in the split {split}, the manifest says {count}"


def check_records(listed: Publication, records: Records) -> Iterator[str]:
    """Yield files that are not as their jobs wrote or read them, and files on which records disagree."""
    known = dict[str, dict[str, list[str]]]()
    for run in records.runs:
        for path, facts in (*run.inputs.items(), *run.outputs.items()):
            known.setdefault(run.place(path), {}).setdefault(facts["sha256"], []).append(run.name)
    for place, digests in sorted(known.items()):
        if len(digests) > 1:
            yield f"{place}: records disagree on its digest: {', '.join(min(runs) for runs in digests.values())}"
        file = listed.files.get(f"{EXPERIMENT}/{place}")
        if file and place not in _CUT_DOWN and file.sha256 not in digests:
            yield f"{place}: not the file of the record {min(name for runs in digests.values() for name in runs)}"


def check_models(folder: Path) -> Iterator[str]:
    """Yield models whose card names other weights or features than the published ones."""
    for path in sorted(folder.glob(f"*/*/{CARD}")):
        card, place, weights = read_json(path), path.relative_to(folder), path.with_name(WEIGHTS)
        sealed = folder / "features" / str(card.get("backbone")) / "manifest.json"
        if weights.is_file() and sha256_file(weights) != card.get("weights_sha256"):
            yield f"{place.with_name(WEIGHTS)}: not the weights of {place}"
        if sealed.is_file() and read_sealed(sealed)["fingerprint"] != card.get("inputs", {}).get("features"):
            yield f"{place}: trained on other features than {sealed.relative_to(folder)}"


def rebuild_store(folder: Path, place: str, splits: Sequence[str], stores: Path) -> Iterator[str]:
    """Make the store of a sealed manifest in ``stores``, and let the manifest lead there; yield its faults.

    Raises:
        UserError: the published rows are not those of its layout.
    """
    sealed, data = read_sealed(folder / place), read_manifest(folder / DATA)
    identity, parts = identity_in(sealed), {path.stem: path for path in (folder / place).parent.glob(f"{ROWS}/*.npy")}
    rows = scored_rows(data, identity, splits)
    table = data.image_table if identity == "image_id" else data.caption_table
    if sealed[identity]["shape"][0] != len(table):
        raise UserError(f"a store of {sealed[identity]['shape'][0]} rows, the data set has {len(table)}", where=place)
    yield from _check_recipe(place, sealed, data)
    if not (layouts := {name: layout for name, layout in layouts_in(sealed).items() if name in parts}):
        return
    writer = StoreWriter(stores / sealed["fingerprint"][:16], layouts)
    writer.begin(sealed["attributes"])
    ids, arrays = writer.write_ids([table.column(identity)], identity), dict[str, Any]()
    for name, layout in layouts.items():
        values = read_array(parts[name], np.dtype(layout.dtype).type, "rows of a store", "publish")
        if values.shape != (len(rows), *layout.shape[1:]):
            raise UserError(f"rows of shape {values.shape} for {len(rows)} rows", where=parts[name])
        digests = _write_chunks(writer.group / name, layout, rows, values)
        stated = sealed["arrays"][name]["checksums"]
        for chunk, (written, before) in enumerate(zip(digests, stated, strict=True)):
            whole = np.arange(chunk * layout.chunk, min((chunk + 1) * layout.chunk, len(table)))
            if written != before and np.isin(whole, rows).all():
                yield f"{place}: chunk {chunk} of '{name}' is not the one that was sealed"
        arrays[name] = {**sealed["arrays"][name], "checksums": digests}
    store = f"{'../' * len(Path(place).parents)}stores/{writer.folder.name}/{GROUP}"
    table_of_ids = {"shape": list(ids.shape), "checksum": sha256_bytes(ids.tobytes())}
    own = {"store": store, "arrays": arrays, identity: table_of_ids, "partial": True}
    write_json(folder / place, {**sealed, **own})


def _check_recipe(place: str, sealed: dict[str, Any], data: Manifest) -> Iterator[str]:
    """Yield whether a store is of other images or captions, or its fingerprint is not that of its attributes."""
    attributes = sealed["attributes"]
    if "imported" in attributes:
        return
    for name, digest in (("images", data.image_contents), ("captions", data.caption_contents)):
        if attributes.get(f"{name}_sha256", digest) != digest:
            yield f"{place}: features of other {name} than those of data/manifest.json"
    recipe = {key: value for key, value in attributes.items() if key not in _NOT_COUNTED}
    if fingerprint_of({**recipe, "chunk": sealed["chunk"], "format": FORMAT}) != sealed["fingerprint"]:
        yield f"{place}: its fingerprint is not that of its attributes"


def _write_chunks(array: Path, layout: ArrayLayout, rows: "np.ndarray[Any, Any]", values: Any) -> list[str]:
    """Write the chunk files of an array with ``values`` at ``rows``; return the digest of each."""
    digests, empty = list[str](), ""
    for chunk in range(layout.chunks):
        first, last = np.searchsorted(rows, [chunk * layout.chunk, (chunk + 1) * layout.chunk])
        path = chunk_path(array, chunk, len(layout.shape))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            stream.truncate(layout.chunk_bytes)
            for row, value in zip(rows[first:last] - chunk * layout.chunk, values[first:last], strict=True):
                stream.seek(int(row) * (layout.chunk_bytes // layout.chunk))
                stream.write(value.tobytes())
        digests.append(empty if first == last and empty else sha256_file(path))
        empty = digests[-1] if first == last else empty
    return digests
