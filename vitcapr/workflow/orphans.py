"""What changed settings leave behind: results that no rule would make again, and results in the cache without use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vitcapr.provenance.records import RUNS, Run, root_of
from vitcapr.provenance.result_cache import Entry, ResultCache
from vitcapr.workflow.lineage import Lineage

UNFINISHED = "last"
"""The folder beside a model from which its training would continue."""


@dataclass(frozen=True)
class Orphan:
    """What a job made and no rule of the experiment makes any more.

    Attributes:
        experiment: its folder; no file outside it is deleted.
        files: its outputs that are there, what it left to continue from, and its record.
        size: in bytes.
    """

    experiment: Path
    run: Run
    files: tuple[Path, ...]
    size: int

    def delete(self) -> None:
        """Delete the files, and the folders that become empty."""
        for file in self.files:
            if is_inside(file, self.experiment):
                file.unlink(missing_ok=True)
        for file in self.files:
            for folder in file.parents:
                if not is_inside(folder, self.experiment) or folder.name == RUNS or any(folder.iterdir()):
                    break
                folder.rmdir()


def is_inside(path: Path, folder: Path) -> bool:
    """Whether ``path`` lies below ``folder`` when every symbolic link is followed."""
    return folder.resolve() in path.resolve().parents


def recorded_experiments(results: Path) -> list[Path]:
    """The folders in ``results`` that hold records; not a link to another one of them."""
    found = sorted(path.parent for path in results.glob(f"*/{RUNS}") if path.is_dir())
    return [path for path in found if not path.is_symlink() or not is_inside(path, results)]


def orphans(experiment: Path, runs: Iterable[Run], wanted: Iterable[str]) -> list[Orphan]:
    """The jobs among the ``runs`` of an experiment of whose outputs none is ``wanted``, paths as the rules spell them.

    Files without a record, which a person may have put there, are none of them.
    """
    lineage = Lineage(experiment, tuple(runs))
    kept = {path.removeprefix(f"{root_of(path)}/") for path in wanted}
    found = []
    for run in lineage.runs:
        if kept.isdisjoint(map(run.place, run.outputs)):
            outputs = lineage.outputs(run)
            unfinished = [file for output in outputs for file in (output.parent / UNFINISHED).rglob("*")]
            there = [path for path in dict.fromkeys([*outputs, *unfinished, run.path]) if path.is_file()]
            files = tuple(path for path in there if is_inside(path, experiment))
            found.append(Orphan(experiment, run, files, sum(path.stat().st_size for path in files)))
    return found


def unused_entries(cache: ResultCache, runs: Iterable[Run]) -> list[Entry]:
    """The entries that are no present result of ``runs``: they wait for a setting that may come back."""
    used = {str(run.facts["result_cache"]["key"]) for run in runs if run.facts["result_cache"]}
    return [entry for entry in cache.entries() if entry.key not in used]


def made_by(made: Mapping[str, object]) -> str:
    """Who, where and when, for a list."""
    return f"{made['user']} on {made['host']}, {str(made['started'])[:10]}"
