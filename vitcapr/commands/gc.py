"""List what nothing needs any more, and delete it."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.config.reading import read_yaml
from vitcapr.errors import UserError
from vitcapr.pipeline.dry_run import planned_dag
from vitcapr.pipeline.orphans import made_by, orphans, recorded_experiments, unused_entries
from vitcapr.pipeline.records import Run, read_runs
from vitcapr.pipeline.result_cache import VARIABLE, open_result_cache
from vitcapr.progress import format_bytes, print_lines
from vitcapr.store.check import unused_stores

DEFAULT = Path("config.yaml")


@dataclass(frozen=True)
class Leftover:
    """One line of the list.

    Attributes:
        size: in bytes.
        paths: the files and folders that are deleted, where ``what`` is not the path itself.
        kept: the reason for keeping it; empty if it is deleted.
    """

    size: int
    what: str
    origin: str
    delete: Callable[[], None]
    paths: Sequence[Path] = ()
    kept: str = ""


def main(
    results: Annotated[Path, typer.Option("--results", help="The folder of all results.")] = Path("results"),
    configfile: Annotated[
        list[Path] | None,
        typer.Option(
            "--configfile", help="File of an experiment that is not in experiments/; repeat the option for several."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Delete the files; without this option they are only listed.")
    ] = False,
) -> None:
    """List results that no experiment needs any more, with size and maker; --yes deletes them."""
    if not results.is_dir():
        raise UserError("no such folder", where=results, remedy="name the folder of all results with --results")
    doomed = []
    for item in leftovers(results, configurations(configfile or [])):
        kept = f"  {item.kept}" if item.kept else ""
        print_lines(f"{format_bytes(item.size):>10}  {item.what}  ({item.origin}){kept}")
        print_lines(*(f"{'':10}    {path}" for path in item.paths))
        if not item.kept:
            doomed.append(item)
    total = format_bytes(sum(item.size for item in doomed))
    if not doomed:
        print_lines(f"everything in {results} is in use")
    elif yes:
        for item in doomed:
            item.delete()
        print_lines(f"{total} deleted")
    else:
        print_lines(f"{total} can be freed: run again with --yes")


def leftovers(results: Path, files: dict[str, list[list[Path]]]) -> Iterator[Leftover]:
    """Results of definitions that are no longer in use, unused entries of the result cache, and unused stores."""
    alive: list[Run] = []
    for experiment in recorded_experiments(results):
        runs = read_runs(experiment)
        if experiment.name not in files:
            alive += runs
            print_lines(f"{experiment}: its configuration is not known and it is left alone; name it with --configfile")
            continue
        needed = set[str]().union(*map(output_files, files[experiment.name]))
        left = orphans(experiment, runs, needed)
        for orphan in left:
            name, origin = f"{experiment.name}: {orphan.run.name}", made_by(orphan.run.made)
            yield Leftover(orphan.size, name, origin, orphan.delete, orphan.files)
        gone = {orphan.run.path for orphan in left}
        alive += [run for run in runs if run.path not in gone]
    cache = open_result_cache(results)
    others = cache is not None and not cache.root.resolve().is_relative_to(results.resolve())
    kept = f"in a cache that other projects may use ({VARIABLE}), left alone" if others else ""
    for entry in unused_entries(cache, alive) if cache else []:
        yield Leftover(entry.freed, str(entry.path), made_by(entry.run), partial(shutil.rmtree, entry.path), kept=kept)
    for store in unused_stores(results):
        path, kept = store.path, "written within the last hour, left alone" if store.recent else ""
        what = f"{path}, {store.chunks} chunks"
        yield Leftover(store.size, what, _owner(path), partial(shutil.rmtree, path), kept=kept)


def configurations(given: list[Path]) -> dict[str, list[list[Path]]]:
    """Of every known experiment, the configuration files of each of its definitions, which all keep their results:
    config.yaml, experiments/*.yaml, those given."""
    known: dict[str, list[list[Path]]] = {}
    if DEFAULT.is_file():
        known[str(read_yaml(DEFAULT).get("experiment"))] = [[]]
    for path in [*sorted(Path("experiments").glob("*.yaml")), *given]:
        known.setdefault(str(read_yaml(path).get("experiment")), []).append([path])
    return known


def output_files(configfiles: list[Path]) -> set[str]:
    """Every file that the rules make for an experiment."""
    with planned_dag(configfiles) as dag:
        return {str(file) for job in dag.jobs for file in job.output}


def _owner(path: Path) -> str:
    status = path.stat()
    name = str(status.st_uid)
    with suppress(KeyError):
        name = path.owner()
    return f"{name}, {datetime.fromtimestamp(status.st_mtime, UTC):%Y-%m-%d}"


app = typer_app(main)
