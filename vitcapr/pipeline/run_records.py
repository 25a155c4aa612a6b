"""Run records: the stage, inputs, settings, machine and cost of every result.

An output holds no time and no host, because the same work has to give the same bytes. Time and host stand in a record
beside the outputs, ``results/<experiment>/runs/<rule>/<wildcards>.json``. Every job has one, named like its log.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

from vitcapr.errors import UserError
from vitcapr.files import sha256_file

FORMAT = "vitcapr-run-5"
RESULTS, RUNS, LOGS = "results", "runs", "logs"


class FileFacts(TypedDict):
    """A file that a job read or wrote: the parameter that named it, its digest and its size in bytes."""

    option: str
    sha256: str
    size: int


Files = Mapping[str, FileFacts]
"""By their paths."""


class Made(TypedDict):
    """Who made a result, where, when, for how long and with what."""

    user: str
    host: str
    platform: str
    started: str
    seconds: float
    cpu_seconds: float
    threads: int
    peak_memory_mb: int
    python: str


class CacheUse(TypedDict):
    """The key in the result cache, and when the result was restored from there."""

    key: str
    restored: str | None


class Accepted(TypedDict):
    """Who accepted a stale result as it is, where and when, and what differed from the job that made it."""

    user: str
    host: str
    time: str
    differed: list[str]


class Run(BaseModel):
    """The record of one finished job.

    Attributes:
        path: of the record.
        code: see :func:`~vitcapr.pipeline.code.job_code`.
        files: the digests of the user's files, by their keys in the settings.
        names: the names of the inputs that have names, by their parameters.
        inputs, outputs: by the paths of the files.
        accepted: what a person has accepted; code, settings and digests are then those of the last acceptance.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    path: Path
    stage: str
    command: str
    code: dict[str, str]
    settings: dict[str, Any]
    values: dict[str, Any]
    files: dict[str, str]
    names: dict[str, list[str]] = {}
    inputs: dict[str, FileFacts]
    outputs: dict[str, FileFacts]
    made: Made
    result_cache: CacheUse | None
    accepted: list[Accepted] = []

    @property
    def name(self) -> str:
        """The rule and its wildcards, such as ``decode/attention.beam.test``."""
        parts = self.path.with_suffix("").parts
        return "/".join(parts[len(parts) - parts[::-1].index(RUNS) :])

    @property
    def time(self) -> str:
        """Time of the run in UTC; for a result from the cache, the time of its restoration."""
        return (self.result_cache["restored"] if self.result_cache else None) or self.made["started"]

    @cached_property
    def folder(self) -> str | None:
        """The experiment's folder as the job saw it, ``results/<experiment>``; None for a job without outputs."""
        return next((find_experiment_folder(path) for path in self.outputs), None)

    def place(self, path: str) -> str:
        """Return a file of the record from its experiment's folder on, however the folder was called when the job ran.

        A file outside that folder, such as a file of the user's, keeps its path.
        """
        return path if self.folder is None else path.removeprefix(f"{self.folder}/")

    @property
    def wrote(self) -> dict[str, str]:
        """The digests of the outputs, by their places."""
        return {self.place(path): facts["sha256"] for path, facts in self.outputs.items()}


def record_of_log(log: Path) -> Path | None:
    """Return the path of the record of the job with this log; None if no rule runs the command.

    ``results`` may lie anywhere, as in a workflow that uses this one as a module with a prefix.

    >>> record_of_log(Path("study/results/demo/logs/decode/a.beam.test.log"))
    PosixPath('study/results/demo/runs/decode/a.beam.test.json')
    """
    for folder in log.parents:
        if folder.name == LOGS and folder.parent.parent.name == RESULTS:
            return folder.parent / RUNS / log.relative_to(folder).with_suffix(".json")
    return None


def find_experiment_folder(path: str) -> str | None:
    """Return the experiment's folder that a path of a rule leads into; None for others.

    Absolute paths and paths with ``..`` lead into none.

    >>> find_experiment_folder("study/results/demo/text/vocabulary.json")
    'study/results/demo'
    >>> find_experiment_folder("results/demo/../other/data") is None
    True
    """
    parts = PurePosixPath(path).parts
    if RESULTS not in parts or path.startswith("/") or ".." in parts:
        return None
    end = parts.index(RESULTS) + 2
    return "/".join(parts[:end]) if len(parts) > end else None


def read_run(path: Path) -> Run:
    """Read a record; a UserError if it is missing, damaged, of another format, or not of one experiment."""
    from vitcapr.formats.records import read_format, reading

    what, remedy = "the record of a run", "delete it, and run its job"
    content = read_format(path, FORMAT, what, remedy)
    with reading(path, what, remedy):
        run = Run.model_validate({**content, "path": path})
        for output in run.outputs:
            if run.folder is None or find_experiment_folder(output) != run.folder:
                raise ValueError(f"it names an output outside its experiment, {output!r}")
        return run


def read_runs(experiment: Path, quiet: bool = False) -> list[Run]:
    """Return the records of all jobs of an experiment, by name.

    Those that are damaged or of another version of vitcapr are left out, with one line: their jobs run again where
    their results are needed.
    """
    runs, errors = [], list[UserError]()
    for path in sorted((experiment / RUNS).rglob("[!.]*.json")):
        try:
            runs.append(read_run(path))
        except UserError as error:
            errors.append(error)
    if errors and not quiet:
        print(f"{experiment / RUNS}: {len(errors)} records are left out: {errors[0]}", file=sys.stderr)
    return runs


def file_facts(files: Mapping[str, list[Path]], digest: Callable[[Path], str] = sha256_file) -> Files:
    """Return the facts of the files of each parameter, by path."""
    named = {path: name for name, paths in files.items() for path in paths}
    return {
        path.as_posix(): {"option": name, "sha256": digest(path), "size": path.stat().st_size}
        for path, name in sorted(named.items())
    }


def find_writers(inputs: Files) -> dict[str, Run]:
    """Return the records of the jobs that wrote these files. Of several for one file, the newest counts."""
    experiments = {folder for path in inputs if (folder := find_experiment_folder(path)) is not None}
    runs = [run for experiment in experiments for run in read_runs(Path(experiment), quiet=True)]
    runs.sort(key=lambda run: run.time)
    return {path: run for run in runs for path in run.outputs.keys() & inputs.keys()}


def check_as_written(inputs: Files, writers: Mapping[str, Run]) -> None:
    """Check that inputs are as their jobs wrote them. A file without a record passes."""
    for path, run in writers.items():
        if run.outputs[path]["sha256"] != inputs[path]["sha256"]:
            remedy = f"snakemake --forcerun {path} makes it again; to keep your change, delete {run.path}"
            raise UserError(f"the file is not as {run.name} wrote it", where=path, remedy=remedy)


_DATA_SET = {"tokens", "tags", "paraphrases", "captions", "candidates", "attention", "embeddings", "all_languages"}
SAME_ORIGIN = {
    ("manifest", "data set"): _DATA_SET | {"ranks", "query_bank", "before", "after"},
    ("vocabulary", "vocabulary"): {"tokens", "captions", "candidates", "captioner", "start", "word_vectors"},
    ("features", "store of features"): {"embeddings"},
}
"""Input of a stage, and its name for people -> the inputs that must have been made with the same one.

A model may serve another data set.
"""
PIECES = "/text/pieces/"
"""The folder of the vocabularies of captioners that are language models, each with its own."""


def check_same_origin(inputs: Files, writers: Mapping[str, Run]) -> None:
    """Check that inputs were made with one data set, one vocabulary and one store of features.

    Shapes and names may fit nevertheless. A file without a record passes.
    """

    def digests(files: Files, option: str) -> set[str]:
        named = [facts for path, facts in files.items() if facts["option"] == option and PIECES not in path]
        return {facts["sha256"] for facts in named}

    for path, run in writers.items():
        for (option, what), options in SAME_ORIGIN.items():
            here, there = digests(inputs, option), digests({**run.inputs, **run.outputs}, option)
            if inputs[path]["option"] in options and here and there and here != there:
                raise UserError(f"it was made with another {what}", where=path, remedy="read files of one experiment")
