"""What changed settings leave behind: results that no rule would make again, and results in the cache without use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vitcapr.provenance.records import RUNS, Run
from vitcapr.provenance.result_cache import Entry, ResultCache
from vitcapr.workflow.lineage import Lineage

UNFINISHED = "last"
"""The folder beside a model from which its training would continue."""


@dataclass(frozen=True)
class Orphan:
    """What a job made and no rule of the experiment makes any more.

    Attributes:
        files: its outputs that are there, what it left to continue from, and its record.
        size: in bytes.
    """

    run: Run
    files: tuple[Path, ...]
    size: int

    def delete(self) -> None:
        """Delete the files, and the folders that become empty."""
        for file in self.files:
            file.unlink(missing_ok=True)
        for file in self.files:
            for folder in file.parents:
                if folder.name == RUNS or not folder.is_dir() or any(folder.iterdir()):
                    break
                folder.rmdir()


def recorded_experiments(results: Path) -> list[Path]:
    """The folders in ``results`` that hold records."""
    return sorted(path.parent for path in results.glob(f"*/{RUNS}") if path.is_dir())


def orphans(experiment: Path, runs: Iterable[Run], wanted: Iterable[str]) -> list[Orphan]:
    """The jobs among the ``runs`` of an experiment of whose outputs none is ``wanted``, paths as the rules spell them.

    Files without a record, which a person may have put there, are none of them.
    """
    lineage = Lineage(experiment, tuple(runs))
    kept = {lineage.place(path) for path in wanted}
    found = []
    for run in lineage.runs:
        places = [lineage.place(path) for path in run.outputs]
        if kept.isdisjoint(places):
            outputs = [lineage.file(path) for path in run.outputs]
            unfinished = [file for output in outputs for file in (output.parent / UNFINISHED).rglob("*")]
            files = tuple(path for path in dict.fromkeys([*outputs, *unfinished, run.path]) if path.is_file())
            found.append(Orphan(run, files, sum(path.stat().st_size for path in files)))
    return found


def unused_entries(cache: ResultCache, runs: Iterable[Run]) -> list[Entry]:
    """The entries that are no present result of ``runs``: they wait for a setting that may come back."""
    used = {str(run.facts["result_cache"]["key"]) for run in runs if run.facts["result_cache"]}
    return [entry for entry in cache.entries() if entry.key not in used]


def made_by(made: Mapping[str, object]) -> str:
    """Who, where and when, for a list."""
    return f"{made['user']} on {made['host']}, {str(made['started'])[:10]}"
