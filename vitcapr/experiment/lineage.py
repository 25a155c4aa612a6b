"""The jobs of an experiment, linked by the files that they wrote and read; and what differs between two jobs."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.pipeline.code import counted
from vitcapr.pipeline.run_records import RUNS, Run, read_runs

_SHOWN = 3
"""Files of code that one line names."""


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


def code_changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield the files and libraries that differ and count, of two :func:`vitcapr.pipeline.code.job_code`."""
    before, now = counted(before), counted(now)
    changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    files = [name for name in changed if not name.isidentifier()]
    if edited := [name for name in files if name in before and name in now] or files:
        more = f" and {len(edited) - _SHOWN} more" if len(edited) > _SHOWN else ""
        yield f"its code changed ({', '.join(edited[:_SHOWN])}{more})"
    for name in sorted(set(changed) - set(files)):
        yield f"{name} {before.get(name, 'not used')} -> {now.get(name, 'not used')}"


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each difference between two fingerprints of one stage.

    The parts are ``code``, ``settings``, ``values`` and the digests of the user's ``files``.
    """
    yield from code_changes(before["code"], now["code"])
    for part in ("settings", "values"):
        yield from (f"{key} {old} -> {new}" for key, old, new in differences(before[part], now[part]))
    yield from (f"the content of {key} changed" for key, _, _ in differences(before["files"], now["files"]))


def leaves(values: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every (dotted key, value as JSON) of nested settings."""
    if isinstance(values, dict) and values:
        for name, value in values.items():
            yield from leaves(value, f"{key}.{name}" if key else name)
    else:
        yield key, json.dumps(values, ensure_ascii=False)


def differences(before: Any, now: Any, key: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the (dotted key, old, new) of every leaf that differs, old and new as JSON."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = (dict(zip(map(str, range(len(each))), each, strict=True)) for each in (before, now))
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            yield from differences(before.get(name), now.get(name), f"{key}.{name}" if key else name)
    elif before != now:
        yield key, json.dumps(before, ensure_ascii=False), json.dumps(now, ensure_ascii=False)
