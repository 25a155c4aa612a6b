"""List what nothing needs any more, and delete it."""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from vitcapr.commands.main import typer_app
from vitcapr.commands.status import planned_dag
from vitcapr.config.reading import read_yaml
from vitcapr.errors import UserError
from vitcapr.experiment.lineage import Records
from vitcapr.experiment.rule import JOBS
from vitcapr.files import file_states
from vitcapr.formats.kinds import CHECKPOINT
from vitcapr.pipeline.result_cache import VARIABLE, open_result_cache
from vitcapr.pipeline.run_records import RUNS, Run, find_experiment_folder
from vitcapr.progress import format_bytes, print_lines
from vitcapr.store.check import unused_stores
from vitcapr.store.layout import CHECKSUMS

DEFAULT = Path("config.yaml")
_RECENT_SECONDS = 3600.0
"""An extraction may still be filling a store that was written to within these."""


class Unused(NamedTuple):
    """One line of the list of unused files.

    Attributes:
        paths: what is deleted: files of an experiment, or one folder.
        size: in bytes.
        kept: the reason for keeping it; empty if it is deleted.
    """

    what: str
    origin: str
    paths: Sequence[Path]
    size: int
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
    listed = list(unused(results, configurations(configfile or [])))
    for item in listed:
        print_lines(f"{format_bytes(item.size):>10}  {item.what}  ({item.origin})  {item.kept}".rstrip())
        print_lines(*(f"{'':14}{path}" for path in item.paths if str(path) != item.what))
    doomed = [item for item in listed if not item.kept]
    total = format_bytes(sum(item.size for item in doomed))
    for item in doomed if yes else ():
        delete(item.paths, results)
    if not doomed:
        print_lines(f"everything in {results} is in use")
    else:
        print_lines(f"{total} deleted" if yes else f"{total} can be freed: run again with --yes")


def unused(results: Path, files: Mapping[str, list[list[Path]]]) -> Iterator[Unused]:
    """Yield unused results, entries of the result cache, stores, and job files of earlier runs.

    A result is unused if no definition asks for it any more.
    """
    used, jobs = set[str](), set(results.glob(f"{JOBS}/*.json"))
    for experiment in recorded_experiments(results):
        records, needed = Records(experiment), None
        if experiment.name in files:
            paths = set[str]().union(*map(output_files, files[experiment.name]))
            jobs -= set(map(Path, paths))
            needed = {path.removeprefix(f"{find_experiment_folder(path)}/") for path in paths}
        else:
            print_lines(f"{experiment}: its configuration is not known and it is left alone; name it with --configfile")
        for run in records.runs:
            if needed is None or not needed.isdisjoint(run.wrote):
                used |= {run.result_cache["key"]} if run.result_cache else set()
            else:
                yield _files(records, run)
    cache = open_result_cache(results)
    kept = f"in a cache that other projects may use ({VARIABLE}), left alone"
    for entry in cache.entries() if cache else []:
        if entry.path.name not in used:
            place = "" if is_inside(entry.path, results) else kept
            yield Unused(str(entry.path), _maker(entry.run), [entry.path], entry.freed, place)
    for store in unused_stores(results):
        states, written = file_states(store.rglob("*")).values(), store.stat().st_mtime
        recent = time.time() - max([written, *(state.st_mtime for state in states)]) < _RECENT_SECONDS
        chunks = len([*(store / CHECKSUMS).glob("[0-9]*.json")])
        origin = f"{chunks} chunks, {datetime.fromtimestamp(written, UTC):%Y-%m-%d}"
        size = sum(state.st_size for state in states)
        yield Unused(str(store), origin, [store], size, "written within the last hour, left alone" if recent else "")
    if jobs:
        size = sum(state.st_size for state in file_states(jobs).values())
        yield Unused(str(results / JOBS), f"{len(jobs)} jobs of earlier runs", sorted(jobs), size)


def _files(records: Records, run: Run) -> Unused:
    """Return the outputs, checkpoints and record of a job. A file without a record may be a person's, and stays."""
    outputs = list(records.outputs(run))
    checkpoints = [file for output in outputs for file in (output.parent / CHECKPOINT).rglob("*")]
    files = file_states(p for p in (*outputs, *checkpoints, run.path) if is_inside(p, records.experiment))
    size = sum(state.st_size for state in files.values())
    return Unused(f"{records.experiment.name}: {run.name}", _maker(run.made), list(files), size)


def _maker(made: Mapping[str, Any]) -> str:
    return f"{made['user']} on {made['host']}, {made['started'][:10]}"


def delete(paths: Sequence[Path], results: Path) -> None:
    """Delete files or folders, and the folders in ``results`` that become empty."""
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    folders = {folder for path in paths for folder in path.parents if is_inside(folder, results)}
    for folder in sorted(folders, reverse=True):
        if folder.name != RUNS:
            with suppress(OSError):  # It is not empty.
                folder.rmdir()


def is_inside(path: Path, folder: Path) -> bool:
    """Return whether ``path`` is below ``folder`` after resolving all symbolic links."""
    return folder.resolve() in path.resolve().parents


def recorded_experiments(results: Path) -> list[Path]:
    """Return the folders in ``results`` that hold run records, without links to one another."""
    folders = sorted(path.parent for path in results.glob(f"*/{RUNS}") if path.is_dir())
    return [path for path in folders if not path.is_symlink() or not is_inside(path, results)]


def configurations(given: list[Path]) -> dict[str, list[list[Path]]]:
    """Return the configuration files of each definition of every known experiment.

    The definitions are config.yaml, experiments/*.yaml and the given files; the results of all of them stay.
    """
    known: dict[str, list[list[Path]]] = {}
    if DEFAULT.is_file():
        known[str(read_yaml(DEFAULT).get("experiment"))] = [[]]
    for path in [*sorted(Path("experiments").glob("*.yaml")), *given]:
        known.setdefault(str(read_yaml(path).get("experiment")), []).append([path])
    return known


def output_files(configfiles: list[Path]) -> set[str]:
    """Return every file that the rules make for an experiment, and the files with the jobs of long commands."""
    with planned_dag(configfiles) as dag:
        words = {str(job.params.get("command")).rpartition(" ")[2] for job in dag.jobs}
        long = {word for word in words if Path(word).parent.name == JOBS}
        return long | {str(file) for job in dag.jobs for file in job.output}


app = typer_app(main)
