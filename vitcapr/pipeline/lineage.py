"""The lineage of results: the run records of all jobs, linked by the files that they write and read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.pipeline.records import RUNS, Run, read_runs


@dataclass(frozen=True)
class Lineage:
    """The jobs of one experiment.

    Args:
        runs: their records, by name.
    """

    experiment: Path
    runs: tuple[Run, ...]

    @classmethod
    def of(cls, target: Path) -> "Lineage":
        """The lineage of the experiment that contains ``target`` (or is ``target``).

        Raises:
            UserError: no experiment contains it, or a record cannot be read.
        """
        for folder in (target, *target.parents):
            if (folder / RUNS).is_dir():
                return cls(folder, tuple(read_runs(folder)))
        remedy = "name a file under results/<experiment>, made by snakemake"
        raise UserError("nothing recorded here", where=target, remedy=remedy)

    @cached_property
    def _makers(self) -> Mapping[str, Run]:
        return {run.place(path): run for run in self.runs for path in run.outputs}

    def outputs(self, run: Run) -> list[Path]:
        """The present paths of a job's outputs; the folder of the experiment may have been moved or copied."""
        return [self.experiment / run.place(path) for path in run.outputs]

    def maker(self, run: Run, path: str) -> Run | None:
        """The job that wrote an input of ``run``; None for a user's file."""
        return self._makers.get(run.place(path))

    def made(self, target: Path) -> list[Run]:
        """The jobs that wrote ``target`` or something in it.

        Raises:
            UserError: none did.
        """
        inside = target.resolve().relative_to(self.experiment.resolve())
        jobs = [run for run in self.runs if any(Path(run.place(path)).is_relative_to(inside) for path in run.outputs)]
        if not jobs:
            remedy = "it was made before there were records, by hand, or not yet; snakemake --forcerun makes it again"
            raise UserError("no job is known to have made this", where=target, remedy=remedy)
        return jobs

    def behind(self, places: Iterable[str]) -> list[Run]:
        """The jobs that made ``places`` or, directly or not, what they were made from; by name."""
        jobs: dict[str, Run] = {}
        waiting = list(places)
        while waiting:
            run = self._makers.get(waiting.pop())
            if run is not None and run.name not in jobs:
                jobs[run.name] = run
                waiting += map(run.place, run.inputs)
        return [jobs[name] for name in sorted(jobs)]

    def sources(self, run: Run) -> Iterator[tuple[Run | None, list[str]]]:
        """The files that a job read, grouped by the job that wrote them, in the order of their first files."""
        groups: dict[str, tuple[Run | None, list[str]]] = {}
        for path in run.inputs:
            maker = self.maker(run, path)
            groups.setdefault(maker.name if maker else "", (maker, []))[1].append(path)
        yield from groups.values()

    def is_as_made(self, run: Run) -> bool:
        """Whether the job's outputs are unchanged since it wrote them."""
        digests = [facts["sha256"] for facts in run.outputs.values()]
        files = zip(self.outputs(run), digests, strict=True)
        return all(file.is_file() and sha256_file(file) == digest for file, digest in files)
