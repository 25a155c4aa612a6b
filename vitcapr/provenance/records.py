"""Run records: what made every artefact, from what, how, where, and at what cost.

An output holds no time and no host, because the same work has to give the same bytes. Time and host stand in a record
beside the outputs, ``results/<experiment>/runs/<rule>/<wildcards>.json``. Every job has one, named like its log.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import read_json, sha256_file

FORMAT = "vitcapr-run-2"
RESULTS, RUNS, LOGS = "results", "runs", "logs"
CODE_DIGESTS = ".code.json"
"""In the folder of all results: the digests that :func:`~vitcapr.provenance.code.stage_code` remembers."""


@dataclass(frozen=True)
class Run:
    """One finished job.

    Attributes:
        path: of the record.
        facts: ``stage, command, code, settings, values, inputs, outputs, made, result_cache``; ``made`` is who,
            where, when, for how long and with how much energy; ``inputs`` and ``outputs`` are path -> ``option, sha256,
            size``.
    """

    path: Path
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The rule and its wildcards: ``decode/attention.beam.test``."""
        parts = self.path.with_suffix("").parts
        return "/".join(parts[len(parts) - parts[::-1].index(RUNS) :])

    @property
    def stage(self) -> str:
        return str(self.facts["stage"])

    @property
    def inputs(self) -> Mapping[str, Any]:
        return dict(self.facts["inputs"])

    @property
    def outputs(self) -> Mapping[str, Any]:
        return dict(self.facts["outputs"])

    @property
    def made(self) -> Mapping[str, Any]:
        return dict(self.facts["made"])


def experiment_of_log(log: Path) -> Path | None:
    """The folder ``results/<experiment>`` of the job with this log; None for a command that no rule runs.

    ``results`` may lie anywhere, as in a workflow that uses this one as a module with a prefix.

    >>> experiment_of_log(Path("study/results/demo/logs/decode/a.beam.test.log"))
    PosixPath('study/results/demo')
    """
    for folder in log.parents:
        if folder.name == LOGS and folder.parent.parent.name == RESULTS:
            return folder.parent
    return None


def record_of_log(log: Path) -> Path | None:
    """Where the record of the job with this log stands; None for a command that no rule runs.

    >>> record_of_log(Path("results/demo/logs/decode/a.beam.test.log"))
    PosixPath('results/demo/runs/decode/a.beam.test.json')
    """
    experiment = experiment_of_log(log)
    return None if experiment is None else experiment / RUNS / log.relative_to(experiment / LOGS).with_suffix(".json")


def read_run(path: Path) -> Run:
    """Raises:
    UserError: there is no record, or one of another format.
    """
    facts = read_json(path)
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise UserError(f"not a record of format {FORMAT}", where=path, remedy="delete it")
    return Run(path, facts)


def read_runs(experiment: Path) -> list[Run]:
    """The records of all jobs of an experiment, by name."""
    return [read_run(path) for path in sorted((experiment / RUNS).rglob("[!.]*.json"))]


def experiment_of(path: Path) -> Path:
    """The folder ``results/<experiment>`` that ``path`` lies in.

    Raises:
        UserError: it lies in none.
    """
    for folder in (path, *path.parents):
        if (folder / RUNS).is_dir():
            return folder
    raise UserError(
        "nothing recorded here", where=path, remedy="name a file under results/<experiment>, made by snakemake"
    )


def described(files: Mapping[str, list[Path]]) -> dict[str, dict[str, Any]]:
    """For a record: path -> the parameter that named it, its digest and its size in bytes.

    Args:
        files: by parameter.
    """
    named = {path: name for name, paths in files.items() for path in paths}
    return {
        path.as_posix(): {"option": name, "sha256": sha256_file(path), "size": path.stat().st_size}
        for path, name in sorted(named.items())
    }
