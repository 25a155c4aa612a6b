"""Look at, check, convert, and move feature stores."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vitcapr.commands.feature_import import import_store
from vitcapr.commands.feature_transfer import pull, push
from vitcapr.commands.program import Arrays, Sealed
from vitcapr.errors import UserError

if TYPE_CHECKING:
    from vitcapr.store.reader import FeatureArray, FeatureStore

app = typer.Typer(
    name="features", help=__doc__, add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True
)
app.command()(push)
app.command()(pull)
app.command("import")(import_store)


class Format(StrEnum):
    h5 = "h5"
    npz = "npz"
    lmdb = "lmdb"
    clip_retrieval = "clip-retrieval"
    webdataset = "webdataset"


@app.command()
def info(sealed: Sealed) -> None:
    """Print the content of a store and the origin of its features."""
    from vitcapr.store.reader import open_features

    with open_features(sealed) as store:
        origin = store.attributes
        rows = [
            *_of_network(origin),
            *(_of_images(store) if store.identity == "image_id" else _of_captions(store)),
            (store.identity.removesuffix("_id") + "s", f"{len(store.ids):,}, {store.ids[0]} ... {store.ids[-1]}"),
            *_of_data(origin.get("terms", {}).get("data")),
            *((name, _describe(array)) for name, array in store.items()),
            ("fingerprint", store.fingerprint),
            ("store", str(store.path)),
        ]
    for label, value in rows:
        typer.echo(f"{label:14s} {value}")


@app.command()
def verify(
    sealed: Sealed,
    delete: Annotated[bool, typer.Option("--delete", help="Delete damaged chunks.")] = False,
) -> None:
    """Read every chunk and compare it with its checksum."""
    from vitcapr.formats.store_manifest import read_sealed
    from vitcapr.progress import format_bytes
    from vitcapr.store.verify import check_chunks

    manifest = sealed / "manifest.json" if sealed.is_dir() else sealed
    checks, damaged, read = 0, 0, 0
    for check in check_chunks(manifest):
        checks, read = checks + 1, read + check.size
        if check.problem is None:
            continue
        damaged += 1
        typer.echo(f"bad: chunk {check.index} of {check.array}: {check.problem}: {check.path}", err=True)
        if delete:
            check.path.unlink(missing_ok=True)
            if check.checksum is not None:
                check.checksum.unlink(missing_ok=True)
    if damaged:
        first = "they were deleted; " if delete else "delete them (--delete does), then "
        again = "extract --until seal" if "image_id" in read_sealed(manifest) else "extract_text --until extract_text"
        raise UserError(
            f"{damaged} of {checks} chunks are damaged",
            where=manifest,
            remedy=f"{first}run snakemake --forcerun {again}, which computes only what is missing",
        )
    typer.echo(f"{checks} chunks, {format_bytes(read)}, all as sealed")


@app.command()
def export(
    sealed: Sealed,
    to: Annotated[Format, typer.Option("--to", help="File format.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file or folder to write.")],
) -> None:
    """Export a store to file formats of other programs."""
    from vitcapr.progress import Reporter
    from vitcapr.store import export as exporters
    from vitcapr.store.reader import open_features

    write = getattr(exporters, f"to_{to.name}")
    with Reporter() as reporter, open_features(sealed) as store:
        rows = sum(len(array) for array in store.values())
        with reporter.track(f"export {output.name}", rows, "rows") as tracker:
            write(store, output, tracker.advance)


@app.command()
def stats(
    sealed: Sealed,
    arrays: Arrays = None,
    duplicates: Annotated[int, typer.Option(min=0, help="Number of nearest pairs to list; 0 for none.")] = 10,
    scheduler: Annotated[
        str, typer.Option(help="threads, synchronous, or the address of dask's scheduler: tcp://HOST:8786")
    ] = "threads",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A JSON file for all numbers.")] = None,
) -> None:
    """Print mean, variance, principal components, dead dimensions, vector lengths and near duplicates of a store."""
    from vitcapr.files import write_json
    from vitcapr.store.reader import open_features

    with open_features(sealed.resolve()) as store:
        names = arrays.split(",") if arrays else list(store)
        for name in names:
            if name not in store.arrays:
                raise UserError(f"the store has no array '{name}'", where=sealed, remedy=f"it has {', '.join(store)}")
        from vitcapr.formats.terminal import print_listing
        from vitcapr.store.statistics import statistics, statistics_tables

        with _scheduler(scheduler):
            found = {name: statistics(store, name, duplicates) for name in names}
        if output is not None:
            write_json(output, {"fingerprint": store.fingerprint, "arrays": found})
        backbone = str(store.attributes["backbone"])
    for table in statistics_tables({backbone: found}):
        print_listing(table)


def _of_network(origin: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What computed the features; nothing for decoded pixels."""
    if "backbone" not in origin:
        return []
    stated = origin.get("terms", {}).get("backbone", {}).get("licence")
    return [
        ("backbone", origin["backbone"] + (f" at {origin['revision']}" if origin["revision"] else "")),
        ("licence", stated or "not stated"),
        ("weights", origin["weights_sha256"] or f"unknown, imported from {origin['imported']['kind']}"),
        ("arithmetic", origin["dtype"]),
    ]


def _of_data(terms: Mapping[str, str | None] | None) -> list[tuple[str, str]]:
    """Data set, source and licence; nothing for a store that was imported."""
    if terms is None:
        return []
    source = terms["source"] or "source not known; see data.source"
    return [("data", f"{terms['name']}: {source}"), ("data licence", terms["licence"] or "not known; see data.licence")]


def _describe(array: "FeatureArray") -> str:
    from vitcapr.progress import format_bytes

    shape = " x ".join(str(axis) for axis in array.shape)
    return f"{shape} {array.dtype}, {format_bytes(array.nbytes)} in {array.chunks} chunks"


def _of_images(store: "FeatureStore") -> list[tuple[str, str]]:
    seen = store.attributes.get("preprocessing")
    return [
        ("preprocessing", _preprocessing(seen) if seen else "unknown"),
        ("output", store.attributes.get("output", "hidden")),
        ("grid", f"{store.grid[0]} x {store.grid[1]}" if store.grid != (0, 0) else "none: tokens have no place"),
    ]


def _of_captions(store: "FeatureStore") -> list[tuple[str, str]]:
    if "pool" not in store.attributes:
        return [("pooling", "unknown")]
    pools = {"mean": "mean over the tokens", "cls": "the first token", "last": "the last token"}
    pooled = pools.get(store.attributes["pool"], "the vector compared with an image's")
    return [("pooling", f"{pooled}, {store.attributes['max_length']} at most")]


def _preprocessing(values: dict[str, object]) -> str:
    parts = [f"resize {values['resize']} {values['interpolation']}"]
    if values["crop"]:
        parts.append(f"crop {values['crop']}")
    return ", ".join([*parts, f"mean {values['mean']}", f"std {values['std']}"])


@contextmanager
def _scheduler(name: str) -> Iterator[None]:
    if "://" not in name:
        if name not in ("threads", "synchronous"):
            raise UserError(
                f"no scheduler '{name}'", remedy="threads, synchronous, or an address such as tcp://HOST:8786"
            )
        import dask
        from dask.diagnostics import ProgressBar

        with dask.config.set(scheduler=name), ProgressBar(minimum=2.0):
            yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise UserError("distributed is not installed", remedy="pip install 'vitcapr[distributed]'") from error
    try:
        client = Client(name, timeout="10s")
    except OSError as error:
        raise UserError("no scheduler answers there", where=name) from error
    with client:
        yield
