"""Where results come from: the records of all jobs, joined by the files that one wrote and another read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.provenance.records import Run, experiment_of, read_runs


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
        """The lineage of the experiment that ``target`` lies in, or is.

        Raises:
            UserError: it lies in none, or a record cannot be read.
        """
        experiment = experiment_of(target)
        return cls(experiment, tuple(read_runs(experiment)))

    @cached_property
    def _makers(self) -> Mapping[str, Run]:
        return {self.place(path): run for run in self.runs for path in run.outputs}

    def place(self, path: str | Path) -> str:
        """A path from the experiment's folder on, so that an experiment that was moved or copied is still understood:
        a record names its files as the job saw them, ``results/<experiment>/...``."""
        parts = Path(path).parts
        return "/".join(parts[2:]) if parts[:1] == ("results",) else "/".join(parts)

    def file(self, path: str) -> Path:
        """Where a file of a record is now."""
        own = Path(path).parts[:2] == ("results", self.experiment.name)
        return self.experiment / self.place(path) if own else Path(path)

    def maker(self, path: str) -> Run | None:
        """The job that wrote a file of a record; None for a file of the user's."""
        return self._makers.get(self.place(path))

    def made(self, target: Path) -> list[Run]:
        """The jobs that wrote ``target`` or something in it.

        Raises:
            UserError: none did.
        """
        inside = target.resolve().relative_to(self.experiment.resolve()).as_posix()
        if inside == ".":
            found = list(self.runs)
        else:
            found = [
                run
                for run in self.runs
                if any(self.place(path) == inside or self.place(path).startswith(f"{inside}/") for path in run.outputs)
            ]
        if not found:
            remedy = "it was made before there were records, by hand, or not yet; snakemake --forcerun makes it again"
            raise UserError("no job is known to have made this", where=target, remedy=remedy)
        return found

    def sources(self, run: Run) -> Iterator[tuple[Run | None, list[str]]]:
        """What a job read: the files, gathered by the job that wrote them, in the order of the first of each."""
        groups: dict[str, tuple[Run | None, list[str]]] = {}
        for path in run.inputs:
            maker = self.maker(path)
            groups.setdefault(maker.name if maker else "", (maker, []))[1].append(path)
        yield from groups.values()

    def is_as_made(self, run: Run) -> bool:
        """Whether the job's outputs are the bytes that it wrote."""
        files = ((self.file(path), facts["sha256"]) for path, facts in run.outputs.items())
        return all(file.is_file() and sha256_file(file) == digest for file, digest in files)
