"""A publication as an experiment that stages can read, in a scratch folder, and checks of its parts on each other.

The rows of a store go to their old places; other rows are holes in sparse files, which take no room on the disk.
"""

from collections.abc import Iterator
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
from vitcapr.formats.store_manifest import FORMAT, SCALE, read_sealed
from vitcapr.pipeline.records import Records, Run
from vitcapr.store.layout import GROUP, ArrayLayout, chunk_path, identity_in, layouts_in
from vitcapr.store.writer import TERMS, StoreWriter, fingerprint_of

Faults = Iterator[str]
_NOT_COUNTED = ("fingerprint", TERMS, "grid", "cls_is")
"""Attributes of a store that its fingerprint does not cover."""


def check_data(folder: Path, listed: Publication) -> Faults:
    """Yield the faults of the data set: its tables against its manifest and its counts."""
    manifest, data = read_json(folder / DATA), read_manifest(folder / DATA)
    images = data.images
    rows = canonical_json(images[["image_id", "sha256"]].to_numpy().tolist())
    if sha256_bytes(rows.encode()) != manifest["contents"]["images"]:
        yield "data/images.parquet: the images are not those that data/manifest.json has the digest of"
    splits = images["split"].value_counts().to_dict()
    for split, count in manifest["counts"]["splits"].items():
        if splits.get(split, 0) != count:
            yield f"data/images.parquet: {splits.get(split, 0)} images in the split {split}, the manifest says {count}"
    if not listed.has("data/captions.parquet"):
        return
    captions = data.captions
    if len(captions) != manifest["counts"]["captions"]:
        yield f"data/captions.parquet: {len(captions)} captions, data/manifest.json says {manifest['counts']['captions']}"
    blank = captions[captions["split"].isin(listed.splits) & ~captions["text"].str.strip().astype(bool)]
    for image in blank["image_id"].unique():
        yield f"data/captions.parquet: a reference of image '{image}' is blank"
    owners = images["image_id"].to_numpy()[captions["image_row"]]
    for image in captions["image_id"][captions["image_id"] != owners].unique():
        yield f"data/captions.parquet: captions of image '{image}' have the row of another image"


def check_records(folder: Path, listed: Publication, records: Records, reduced: set[str]) -> Faults:
    """Yield files that are not as their job wrote them, and records that disagree on a file.

    Args:
        reduced: places of files that are cut down, and whose digest differs from that of the record.
    """
    known = dict[str, dict[str, list[str]]]()
    for run in records.runs:
        for path, facts in (*run.inputs.items(), *run.outputs.items()):
            known.setdefault(run.place(path), {}).setdefault(facts["sha256"], []).append(run.name)
    for place, digests in sorted(known.items()):
        if len(digests) > 1:
            names = "; ".join(f"{digest[:8]}: {', '.join(sorted(runs)[:3])}" for digest, runs in digests.items())
            yield f"{place}: its digest differs between the records ({names})"
        name = f"{EXPERIMENT}/{place}"
        if name in listed.files and place not in reduced and listed.files[name].sha256 not in digests:
            runs = sorted({run for each in digests.values() for run in each})
            yield f"{place}: not the file of the record {runs[0]}"


def check_models(folder: Path, listed: Publication) -> Faults:
    """Yield models whose card names other weights, features or words than the published ones."""
    for path in sorted(folder.glob(f"*/*/{CARD}")):
        card, place = read_json(path), path.relative_to(folder)
        weights, sealed = path.with_name(WEIGHTS), folder / "features" / str(card.get("backbone")) / "manifest.json"
        if weights.is_file() and sha256_file(weights) != card.get("weights_sha256"):
            yield f"{place.with_name(WEIGHTS)}: not the weights of {place}"
        inputs = card.get("inputs", {})
        if sealed.is_file() and read_sealed(sealed)["fingerprint"] != inputs.get("features"):
            yield f"{place}: trained on other features than {sealed.relative_to(folder)}"


def rebuild_store(folder: Path, place: str, data: Manifest, splits: list[str], stores: Path) -> Faults:
    """Make the store of a sealed manifest in ``stores``, and let the manifest lead there; yield its faults.

    Raises:
        UserError: the published rows are not those of its layout.
    """
    path = folder / place
    sealed = read_sealed(path)
    attributes, identity = sealed["attributes"], identity_in(sealed)
    rows = scored_rows(data, identity, splits)
    table = data.image_table if identity == "image_id" else data.caption_table
    if sealed[identity]["shape"][0] != len(table):
        raise UserError(f"a store of {sealed[identity]['shape'][0]} rows, the data set has {len(table)}", where=place)
    yield from _check_recipe(place, sealed, data)
    parts = {file.stem: file for file in sorted((path.parent / ROWS).glob("*.npy"))}
    layouts = {name: layout for name, layout in layouts_in(sealed).items() if name in parts}
    if not layouts:
        return
    writer = StoreWriter(stores / sealed["fingerprint"][:16], layouts)
    writer.begin(attributes)
    ids = writer.write_ids([table.column(identity)], identity)
    arrays = dict[str, Any]()
    for name, layout in layouts.items():
        values = read_array(parts[name], np.dtype(layout.dtype).type, "rows of a store", "publish")
        if values.shape != (len(rows), *layout.shape[1:]):
            raise UserError(f"rows of shape {values.shape} for {len(rows)} rows of {place}", where=parts[name])
        digests, complete = _write_chunks(writer, name, layout, rows, values)
        arrays[name] = {**sealed["arrays"][name], "checksums": digests}
        for chunk in complete:
            if digests[chunk] != sealed["arrays"][name]["checksums"][chunk]:
                yield f"{place}: chunk {chunk} of '{name}' is not the one that was sealed"
    store = f"{'../' * len(Path(place).parent.parts)}../stores/{writer.folder.name}/{GROUP}"
    digest = {"shape": list(ids.shape), "checksum": sha256_file(chunk_path(writer.group / identity, 0, 2))}
    write_json(path, {**sealed, "store": store, "arrays": arrays, identity: digest, "partial": True})


def _check_recipe(place: str, sealed: dict[str, Any], data: Manifest) -> Faults:
    """Yield whether a store is of other images or captions, or its fingerprint is not that of its attributes."""
    attributes = sealed["attributes"]
    if "imported" in attributes:
        return
    for name, contents in (("images", data.image_contents), ("captions", data.caption_contents)):
        if attributes.get(f"{name}_sha256", contents) != contents:
            yield f"{place}: features of other {name} than those of data/manifest.json"
    recipe = {key: value for key, value in attributes.items() if key not in _NOT_COUNTED}
    if fingerprint_of({**recipe, "chunk": sealed["chunk"], "format": FORMAT}) != sealed["fingerprint"]:
        yield f"{place}: its fingerprint is not that of its attributes"


def _write_chunks(
    writer: StoreWriter, name: str, layout: ArrayLayout, rows: "np.ndarray[Any, Any]", values: "np.ndarray[Any, Any]"
) -> tuple[list[str], list[int]]:
    """Write the chunk files of an array with ``values`` at ``rows``.

    Returns:
        The digest of each chunk, and the numbers of the chunks all of whose rows are published.
    """
    row_bytes = layout.chunk_bytes // layout.chunk
    digests, complete, empty = list[str](), list[int](), ""
    for chunk in range(layout.chunks):
        first, last = np.searchsorted(rows, [chunk * layout.chunk, (chunk + 1) * layout.chunk])
        path = chunk_path(writer.group / name, chunk, len(layout.shape))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            stream.truncate(layout.chunk_bytes)
            for row, value in zip(rows[first:last] - chunk * layout.chunk, values[first:last], strict=True):
                stream.seek(int(row) * row_bytes)
                stream.write(np.ascontiguousarray(value).tobytes())
        if first == last and not empty:
            empty = sha256_file(path)
        digests.append(empty if first == last else sha256_file(path))
        if last - first == min(layout.chunk, layout.shape[0] - chunk * layout.chunk):
            complete.append(chunk)
    return digests, complete
