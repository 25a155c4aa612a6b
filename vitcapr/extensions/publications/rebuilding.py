"""A publication as an experiment that stages can read, and checks of its files on each other."""

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from vitcapr.errors import UserError
from vitcapr.experiment.lineage import Records
from vitcapr.extensions.publications.publication import DATA, EXPERIMENT, ROWS, Publication, is_in
from vitcapr.extensions.publications.publishing import scored_rows
from vitcapr.files import canonical_json, sha256_bytes, sha256_file, write_json
from vitcapr.formats.containers import read_array
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.store_manifest import read_sealed
from vitcapr.store.layout import checksum_path, chunk_path, identity_in, layouts_in
from vitcapr.store.sealing import write_sealed
from vitcapr.store.writer import StoreWriter, store_folder


def check_images(folder: Path) -> Iterator[str]:
    """Yield a fault if the images of the data set are not those that its manifest has the digest of."""
    data = read_manifest(folder / DATA)
    rows = canonical_json(data.images[["image_id", "sha256"]].to_numpy().tolist())
    if sha256_bytes(rows.encode()) != data.image_contents:
        yield f"data/images.parquet: these are not the images that {DATA} has the digest of"


def check_records(listed: Publication, records: Records) -> Iterator[str]:
    """Yield files that are not as their jobs wrote or read them, and files on which records disagree."""
    known = dict[str, dict[str, str]]()
    for run in records.runs:
        for path, facts in (*run.inputs.items(), *run.outputs.items()):
            known.setdefault(run.place(path), {}).setdefault(facts["sha256"], run.name)
    for place, runs in sorted(known.items()):
        if len(runs) > 1:
            yield f"{place}: records disagree on its digest: {', '.join(runs.values())}"
        file = listed.files.get(f"{EXPERIMENT}/{place}")
        if file and file.sha256 not in runs and place != DATA and not is_in(place, "references"):
            yield f"{place}: not the file of the record {min(runs.values())}"


def rebuild_store(folder: Path, place: str, splits: Collection[str], stores: Path) -> Iterator[str]:
    """Put the published rows of a store to their old places, let its sealed manifest lead there, and yield faults.

    Other rows are holes in sparse files, which take no room on the disk.

    Raises:
        UserError: the published rows are not those of its layout.
    """
    sealed, data = read_sealed(folder / place), read_manifest(folder / DATA)
    identity, parts = identity_in(sealed), {path.stem: path for path in (folder / place).parent.glob(f"{ROWS}/*.npy")}
    if not (layouts := {name: layout for name, layout in layouts_in(sealed).items() if name in parts}):
        return
    rows = scored_rows(data, identity, splits)
    values = {
        name: read_array(parts[name], np.dtype(layout.dtype).type, "rows of a store", "publish")
        for name, layout in layouts.items()
    }
    for name, layout in layouts.items():
        if values[name].shape != (len(rows), *layout.shape[1:]):
            raise UserError(f"rows of shape {values[name].shape} for {len(rows)} rows", where=parts[name])
    writer = StoreWriter(store_folder(stores, sealed["fingerprint"]), layouts)
    writer.begin(sealed["attributes"])
    for chunk in writer.chunks:
        inside, digests = rows // writer.size == chunk, dict[str, str]()
        for name, layout in layouts.items():
            path, shape = chunk_path(writer.group / name, chunk, len(layout.shape)), (layout.chunk, *layout.shape[1:])
            path.parent.mkdir(parents=True, exist_ok=True)
            content = np.memmap(path, np.dtype(layout.dtype).newbyteorder("<"), "w+", shape=shape)
            content[rows[inside] % layout.chunk] = values[name][inside]
            content.flush()
            digests[name] = sha256_file(path)
            whole = inside.sum() == min(layout.chunk, layout.shape[0] - chunk * layout.chunk)
            if whole and digests[name] != sealed["arrays"][name]["checksums"][chunk]:
                yield f"{place}: chunk {chunk} of '{name}' is not the one that was sealed"
        write_json(checksum_path(writer.folder, chunk), digests)
    table = data.image_table if identity == "image_id" else data.caption_table
    write_sealed(writer, [table.column(identity)], identity, folder / place)
