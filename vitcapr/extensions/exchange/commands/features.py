"""Inspect, verify, audit, move, import and export stored features."""

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from vitcapr.commands.main import WithoutContentCheck, split_commas, typer_group
from vitcapr.errors import UserError
from vitcapr.experiment.copies import record_copy
from vitcapr.experiment.lineage import leaves
from vitcapr.experiment.paths import stores_root
from vitcapr.extensions.exchange import transfer
from vitcapr.files import remove_remains, write_json
from vitcapr.formats.audit_files import AUDIT, find_audit
from vitcapr.formats.store_manifest import read_sealed, store_group
from vitcapr.progress import Reporter, format_bytes, print_lines
from vitcapr.store.check import compute_again, sealed_files
from vitcapr.store.reader import FeatureArray, open_features
from vitcapr.store.remote_folder import RemoteFolder
from vitcapr.store.writer import store_folder

app = typer_group(__doc__)

Sealed = Annotated[Path, typer.Argument(help="A sealed manifest.json, or the folder that holds it.")]
Arrays = Annotated[str | None, typer.Option(help="Only these arrays, separated by commas.")]
Url = Annotated[str, typer.Argument(help="A folder, sftp://HOST/PATH, s3://BUCKET/PATH, gs://...; to pull, http://...")]


@app.command()
def info(sealed: Sealed) -> None:
    """Print the attributes of a store, which say what made its features, and its arrays."""
    with open_features(sealed) as store:
        rows = [
            *leaves(store.attributes),
            (store.identity, f"{len(store.ids):,}, {store.ids[0]} ... {store.ids[-1]}"),
            *((name, _describe(array)) for name, array in store.items()),
            ("store", str(store.path)),
        ]
        if stated := find_audit(store.path.parent, read_sealed(store.manifest_path)):
            rows.append(("audit", f"{stated.summary()}; {stated.machine}"))
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        print_lines(f"{label:{width}}  {value}")


@app.command()
def verify(
    store: Annotated[str, typer.Argument(help="A sealed manifest.json, the folder that holds it, or an address.")],
) -> None:
    """Read every chunk and compare it with its checksum."""
    if "://" in store:
        place = RemoteFolder(store)
        with Reporter() as reporter:
            wrong, files = transfer.verify_remote(place, reporter)
        where, remedy = place.url, "push the store again from a sound copy"
    else:
        path = Path(store) / "manifest.json" if Path(store).is_dir() else Path(store)
        manifest = read_sealed(path)
        sealed = sealed_files(manifest, store_group(path, manifest))
        files = {f"chunk {index} of {array}": file for (array, index), file in sealed.items()}
        wrong = {name: f"{problem}: {file.path}" for name, file in files.items() if (problem := file.problem())}
        again = "run the same features import again, which writes only what is missing"
        again = again if "imported" in manifest["attributes"] else compute_again(manifest["arrays"])
        where, remedy = str(path), f"delete these files, then {again}"
    print_lines(*(f"bad: {name} {wrong[name]}" for name in files if name in wrong), stream=sys.stderr)
    if wrong:
        raise UserError(f"{len(wrong)} of {len(files)} chunks are damaged", where=where, remedy=remedy)
    size = sum(file.size for file in files.values())
    print_lines(f"{len(files)} chunks, {format_bytes(size)}, all as sealed")


@app.command("audit")
def audit_store(
    sealed: Sealed,
    data: Annotated[Path, typer.Option("--data", help="The data set of the store: its manifest.json, or its folder.")],
    sample: Annotated[int, typer.Option(min=1, help="Number of rows to compute again.")] = 64,
    backbone: Annotated[
        str | None, typer.Option(help="Checkpoint: a hub id or a folder (default: the one that the recipe names).")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed that draws the rows (default: a new one).")] = None,
    second: Annotated[
        Path | None,
        typer.Option(
            help="Features of the same images by another network or layer: names single rows of other images."
        ),
    ] = None,
) -> None:
    """Compute some rows again by the store's own recipe, compare them, and write audit.json beside the store.

    With --second, or for an imported store, the rows are compared with other features and with the photographs.
    """
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.extensions.exchange.row_audit import audit
    from vitcapr.formats.manifest import read_manifest

    data = data / "manifest.json" if data.is_dir() else data
    with Reporter() as reporter, open_features(sealed) as store:
        if second is not None:
            from vitcapr.extensions.exchange.swapped import look_for_swapped

            with open_features(second) as other:
                look_for_swapped(store, other, read_manifest(data), print_lines)
            return
        if not store.attributes.get("weights_sha256"):  # Imported: the photographs alone can tell.
            from vitcapr.store.content import check_features

            listed = read_manifest(data)
            store.check_rows(store.identity, listed)
            check_features(store.arrays, store.identity, store.grid, listed, print_lines, sealed)
            return
        seed = secrets.randbits(32) if seed is None else seed
        stated = audit(store, read_manifest(data), sample, seed, backbone, resolve_device("auto"), reporter.line)
        stated.write(store.path.parent / AUDIT)
        if stated.verdict == "different":
            bad = ", ".join(f"'{store.ids[row]}'" for row in stated.bad[:5])
            remedy = f"extract or pull it again (rows that differ: {bad})" if bad else "extract or pull it again"
            raise UserError(f"the store is not what its recipe says: {stated.fault}", where=sealed, remedy=remedy)
    print_lines(stated.summary())


@app.command()
def export(
    sealed: Sealed,
    to: Annotated[Literal["h5", "clip-retrieval"], typer.Option("--to", help="File format.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file or folder to write.")],
) -> None:
    """Export a store to file formats of other programs."""
    from vitcapr.extensions.exchange import exporting

    write = exporting.to_h5 if to == "h5" else exporting.to_clip_retrieval
    with Reporter() as reporter, open_features(sealed) as store:
        rows = sum(len(array) for array in store.values())
        with reporter.track(f"export {output.name}", rows, "rows") as tracker:
            write(store, output, tracker.advance)
    for path in output.rglob("[!.]*") if output.is_dir() else [output]:
        remove_remains(path)


@app.command()
def stats(
    sealed: Sealed,
    arrays: Arrays = None,
    duplicates: Annotated[int, typer.Option(min=0, help="Number of nearest pairs to list; 0 for none.")] = 10,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address of dask's scheduler, such as tcp://HOST:8786 (default: threads)."),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A JSON file for all numbers.")] = None,
) -> None:
    """Print mean, variance, principal components, dead dimensions, vector lengths and near duplicates of a store."""
    with open_features(sealed.resolve()) as store:
        names = split_commas(arrays) if arrays else list(store)
        for name in names:
            store[name]  # Another store has no such array, and says so before anything is computed.
        from vitcapr.formats.terminal import print_listing
        from vitcapr.store.statistics import statistics, statistics_tables

        with _scheduler(scheduler):
            measured = {name: statistics(store, name, duplicates) for name in names}
        if output is not None:
            write_json(output, {"fingerprint": store.fingerprint, "arrays": measured})
        backbone = str(store.attributes.get("backbone", "features"))
    for table in statistics_tables({backbone: measured}):
        print_listing(table)


@app.command()
def push(sealed: Sealed, url: Url) -> None:
    """Copy a store to a remote folder. When repeated, it sends only missing files."""
    manifest = sealed / "manifest.json" if sealed.is_dir() else sealed
    with Reporter() as reporter:
        place = RemoteFolder(url)
        compared, fingerprint = transfer.push(manifest, place, reporter), read_sealed(manifest)["fingerprint"]
        record_copy(manifest, place.url, fingerprint, reporter.line)
    print_lines(", ".join([f"{fingerprint[:16]} is whole at {place.url}", *filter(None, [compared])]))


@app.command()
def pull(
    url: Url,
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DEST]", help="Folder to write (default: its folder among the stores).")
    ] = None,
    arrays: Arrays = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="The data set of the store: compares the rows with its photographs.")
    ] = None,
    without_content_check: WithoutContentCheck = False,
) -> None:
    """Copy a store from a remote folder. When repeated, it fetches only missing files."""
    place = RemoteFolder(url)
    manifest = transfer.find_remote(place)
    whole = store_folder(stores_root(), manifest["fingerprint"])
    to = folder or whole.with_name(whole.name + ("-part" if arrays else ""))
    with Reporter() as reporter:
        sealed = transfer.pull(place, manifest, to, reporter, split_commas(arrays) if arrays else None)
    with open_features(sealed) as store:
        print_lines(str(store))
        if data is not None:
            from vitcapr.formats.manifest import read_manifest
            from vitcapr.store.content import check_store_content

            listed = read_manifest(data)
            store.check_rows(store.identity, listed)
            check_store_content(store, listed, not without_content_check, print_lines)
    print_lines(f"sealed: {sealed}")


@app.command("import")
def import_store(
    source: Annotated[
        Path, typer.Argument(help="An .h5, .npz or .npy file, a folder of .npy, or clip-retrieval's folder.")
    ],
    data: Annotated[
        Path | None, typer.Option("--data", help="manifest.json of a data set; the rows are put in its order.")
    ] = None,
    of: Annotated[Literal["images", "captions"], typer.Option("--of", help="What each row describes.")] = "images",
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the backbone (default: name of the file).")
    ] = None,
    ids: Annotated[
        Path | None, typer.Option("--ids", help="File with the ids of the rows: a JSON list, or one id per line.")
    ] = None,
    array: Annotated[
        list[str] | None, typer.Option("--array", help="Import only this array; repeat the option for several.")
    ] = None,
    grid: Annotated[str | None, typer.Option("--grid", help="Rows and columns of patches, such as 14x14.")] = None,
    stores: Annotated[
        Path | None, typer.Option("--stores", help="Folder of the stores (default: VITCAPR_STORES or results/stores).")
    ] = None,
    without_content_check: WithoutContentCheck = False,
) -> None:
    """Convert features of another program into a sealed store."""
    from vitcapr.extensions.exchange.foreign_files import open_foreign, read_ids
    from vitcapr.extensions.exchange.importing import import_features
    from vitcapr.formats.manifest import read_manifest

    manifest = read_manifest(data) if data is not None else None
    given = read_ids(ids) if ids is not None else None
    with Reporter() as reporter, open_foreign(source, given, of) as foreign:
        if array is not None:
            foreign = foreign.only(array)
        table = None if manifest is None else manifest.image_table if of == "images" else manifest.caption_table
        with reporter.track(f"import {source.name}", len(foreign.ids if table is None else table), "rows") as tracker:
            sealed = import_features(
                foreign,
                stores or stores_root(),
                name or source.stem,
                data=manifest,
                identity="image_id" if of == "images" else "caption_id",
                grid=_grid(grid),
                content_check=not without_content_check,
                advance=tracker.advance,
                say=reporter.line,
            )
    print_lines(f"sealed: {sealed}")
    print_lines(f"in an experiment: source: store:{sealed.parent.name}")


def _describe(array: FeatureArray) -> str:
    shape = " x ".join(str(axis) for axis in array.shape)
    return f"{shape} {array.dtype}, {format_bytes(array.nbytes)} in {array.chunks} chunks"


@contextmanager
def _scheduler(address: str | None) -> Iterator[None]:
    if address is None:
        from dask.diagnostics import ProgressBar

        with ProgressBar(minimum=2.0):
            yield
        return
    try:
        from distributed import Client
        from distributed.comm import resolve_address

        # A client of an address that is none would stay, and everything after it would wait for its scheduler.
        client = Client(resolve_address(address), timeout="10s")
    except ImportError as error:
        raise UserError("distributed is not installed", remedy="pip install 'vitcapr[distributed]'") from error
    except (OSError, ValueError) as error:
        raise UserError("no scheduler answers there", where=address) from error
    with client:
        yield


def _grid(text: str | None) -> tuple[int, int]:
    if text is None:
        return 0, 0
    rows, cross, columns = text.partition("x")
    if not (cross and rows.isdigit() and columns.isdigit()):
        raise UserError(f"--grid {text} is not ROWSxCOLUMNS", remedy="for instance --grid 14x14")
    return int(rows), int(columns)
