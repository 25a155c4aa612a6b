"""Orphans: results that no rule of the present configuration makes, and unused entries of the result cache."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vitcapr.files import file_states
from vitcapr.pipeline.lineage import Lineage
from vitcapr.pipeline.records import RUNS, Run, find_experiment_folder
from vitcapr.pipeline.result_cache import CacheEntry, ResultCache

UNFINISHED = "checkpoint"
"""The folder beside a model from which its training would continue."""


@dataclass(frozen=True)
class Orphan:
    """The outputs of a job that no rule of the experiment makes any more.

    Attributes:
        experiment: its folder; no file outside it is deleted.
        files: its existing outputs, its checkpoint and its run record.
        size: in bytes.
    """

    experiment: Path
    run: Run
    files: tuple[Path, ...]
    size: int

    def delete(self) -> None:
        """Delete the files and the folders that become empty."""
        for file in self.files:
            if is_inside(file, self.experiment):
                file.unlink(missing_ok=True)
        folders = {folder for file in self.files for folder in file.parents if is_inside(folder, self.experiment)}
        for folder in sorted(folders, reverse=True):
            if folder.name != RUNS:
                with suppress(OSError):  # It is not empty.
                    folder.rmdir()


def is_inside(path: Path, folder: Path) -> bool:
    """Whether ``path`` is below ``folder`` after resolving all symbolic links."""
    return folder.resolve() in path.resolve().parents


def recorded_experiments(results: Path) -> list[Path]:
    """The folders in ``results`` that hold run records, without links to one another."""
    folders = sorted(path.parent for path in results.glob(f"*/{RUNS}") if path.is_dir())
    return [path for path in folders if not path.is_symlink() or not is_inside(path, results)]


def orphans(experiment: Path, runs: Iterable[Run], wanted: Iterable[str]) -> list[Orphan]:
    """The jobs among the ``runs`` of an experiment none of whose outputs is in ``wanted`` (paths as in the rules).

    Files without a record are ignored, because a person may have put them there.
    """
    lineage = Lineage(experiment, tuple(runs))
    kept = {path.removeprefix(f"{find_experiment_folder(path)}/") for path in wanted}
    orphaned = []
    for run in lineage.runs:
        if kept.isdisjoint(map(run.place, run.outputs)):
            outputs = lineage.outputs(run)
            unfinished = [file for output in outputs for file in (output.parent / UNFINISHED).rglob("*")]
            inside = [path for path in (*outputs, *unfinished, run.path) if is_inside(path, experiment)]
            files = file_states(inside)
            orphaned.append(Orphan(experiment, run, tuple(files), sum(state.st_size for state in files.values())))
    return orphaned


def unused_entries(cache: ResultCache, runs: Iterable[Run]) -> list[CacheEntry]:
    """The entries that no present result of ``runs`` uses. A run with earlier settings would use them."""
    used = {str(run.result_cache["key"]) for run in runs if run.result_cache}
    return [entry for entry in cache.entries() if entry.key not in used]


def made_by(made: Mapping[str, object]) -> str:
    """User, host and date, for a list."""
    return f"{made['user']} on {made['host']}, {str(made['started'])[:10]}"
