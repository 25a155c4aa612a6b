"""``vitcapr features stats``: statistics of a store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.options import Arrays, Sealed
from vitcapr.errors import UserError


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
