"""The jobs of an experiment, linked by the files that they wrote and read."""

from collections.abc import Iterable
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.pipeline.run_records import RUNS, Run, read_runs


class Records:
    """The run records of an experiment, linked by the files that the jobs write and read.

    Its folder may have been moved or copied since the jobs ran.
    """

    def __init__(self, experiment: Path) -> None:
        self.experiment, self.runs = experiment, read_runs(experiment)
        self._writers = {place: run for run in self.runs for place in run.wrote}

    @classmethod
    def around(cls, target: Path) -> "Records":
        """Return the records of the experiment that contains ``target``, or is it; a UserError if none does."""
        for folder in (target, *target.parents):
            if (folder / RUNS).is_dir():
                return cls(folder)
        remedy = "name a file under results/<experiment>, made by snakemake"
        raise UserError("nothing recorded here", where=target, remedy=remedy)

    def writer(self, run: Run, path: str) -> Run | None:
        """Return the job that wrote an input of ``run``; None for a file of the user."""
        return self._writers.get(run.place(path))

    def outputs(self, run: Run) -> dict[Path, str]:
        """Return the present paths of a job's outputs, with the digests of what it wrote."""
        return {self.experiment / place: digest for place, digest in run.wrote.items()}

    def is_as_written(self, run: Run) -> bool:
        """Return whether the job's outputs are unchanged since it wrote them."""
        return all(file.is_file() and sha256_file(file) == digest for file, digest in self.outputs(run).items())

    def writers(self, target: Path) -> list[Run]:
        """Return the jobs that wrote ``target`` or something in it; a UserError if none did."""
        inside = target.resolve().relative_to(self.experiment.resolve())
        jobs = [run for run in self.runs if any(Path(place).is_relative_to(inside) for place in run.wrote)]
        if not jobs:
            remedy = "it was made before there were records, by hand, or not yet; snakemake --forcerun makes it again"
            raise UserError("no job is known to have made this", where=target, remedy=remedy)
        return jobs

    def behind(self, places: Iterable[str]) -> list[Run]:
        """Return the jobs that made ``places`` or, directly or not, what they were made from; by name."""
        jobs: dict[str, Run] = {}
        waiting = list(places)
        while waiting:
            run = self._writers.get(waiting.pop())
            if run is not None and run.name not in jobs:
                jobs[run.name] = run
                waiting += map(run.place, run.inputs)
        return [jobs[name] for name in sorted(jobs)]
