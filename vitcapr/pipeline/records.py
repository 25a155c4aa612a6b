"""Run records: the stage, inputs, settings, machine and cost of every artefact.

An output holds no time and no host, because the same work has to give the same bytes. Time and host stand in a record
beside the outputs, ``results/<experiment>/runs/<rule>/<wildcards>.json``. Every job has one, named like its log.
"""

import json
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.records import read_format, reading

FORMAT = "vitcapr-run-4"
RESULTS, RUNS, LOGS = "results", "runs", "logs"
CODE_DIGESTS = ".code.json"
"""In the folder of all results: the digests that :func:`~vitcapr.pipeline.code.stage_code` remembers."""
GPU = Path("/dev/nvidiactl")


class FileFacts(TypedDict):
    """A file that a job read or wrote: the parameter that named it, its digest and its size in bytes."""

    option: str
    sha256: str
    size: int


class Energy(TypedDict):
    """Joules of each GPU; ``absent`` has the reason for each missing measurement."""

    joules: dict[str, float]
    absent: dict[str, str]


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
    energy: Energy
    python: str
    libraries: dict[str, str]


class CacheUse(TypedDict):
    """The key in the result cache, and when the result was restored from there."""

    key: str
    restored: str | None


class Run(BaseModel):
    """The record of one finished job; its files by their paths.

    Attributes:
        path: of the record.
        sources: the digests of the files of the user, by their keys in the settings.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    path: Path
    stage: str
    command: str
    code: dict[str, str]
    settings: dict[str, Any]
    values: dict[str, Any]
    sources: dict[str, str]
    inputs: dict[str, FileFacts]
    outputs: dict[str, FileFacts]
    made: Made
    result_cache: CacheUse | None

    @property
    def name(self) -> str:
        """The rule and its wildcards, such as ``decode/attention.beam.test``."""
        parts = self.path.with_suffix("").parts
        return "/".join(parts[len(parts) - parts[::-1].index(RUNS) :])

    @property
    def time(self) -> str:
        """When the job ran, in UTC: for a result that was restored from the cache, when it was restored."""
        return (self.result_cache["restored"] if self.result_cache else None) or self.made["started"]

    @cached_property
    def folder(self) -> str | None:
        """The experiment's folder as the job saw it, ``results/<experiment>``; None for a job without outputs."""
        return next((find_experiment_folder(path) for path in self.outputs), None)

    def place(self, path: str) -> str:
        """A file of the record from its experiment's folder on, however the folder was called when the job ran.

        A file outside that folder, such as a file of the user's, keeps its path.
        """
        return path if self.folder is None else path.removeprefix(f"{self.folder}/")


def record_of_log(log: Path) -> Path | None:
    """The path of the record of the job with this log; None if no rule runs the command.

    ``results`` may lie anywhere, as in a workflow that uses this one as a module with a prefix.

    >>> record_of_log(Path("study/results/demo/logs/decode/a.beam.test.log"))
    PosixPath('study/results/demo/runs/decode/a.beam.test.json')
    """
    for folder in log.parents:
        if folder.name == LOGS and folder.parent.parent.name == RESULTS:
            return folder.parent / RUNS / log.relative_to(folder).with_suffix(".json")
    return None


def find_experiment_folder(path: str) -> str | None:
    """The experiment's folder that a path of a rule leads into; None for a path that leads into none.

    A path with ``..`` and an absolute path lead into none.

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
    """Raises:
    UserError: there is no record, one of another format, a damaged one, or one whose outputs do not lie in one
        experiment.
    """
    what, remedy = "the record of a run", "delete it, and run its job"
    content = read_format(path, FORMAT, what, remedy)
    with reading(path, what, remedy):
        run = Run.model_validate({**content, "path": path})
        for output in run.outputs:
            if run.folder is None or find_experiment_folder(output) != run.folder:
                raise ValueError(f"it names an output outside its experiment, {output!r}")
        return run


def read_runs(experiment: Path) -> list[Run]:
    """The records of all jobs of an experiment, by name. Those of other versions of vitcapr are left out, with a line:
    their jobs run again where their results are needed.

    Raises:
        UserError: a record is damaged.
    """
    runs, others = [], 0
    for path in sorted((experiment / RUNS).rglob("[!.]*.json")):
        try:
            runs.append(read_run(path))
        except UserError:
            if not _is_of_another_version(path):
                raise
            others += 1
    if others:
        print(f"{experiment / RUNS}: {others} records of another version of vitcapr are left out", file=sys.stderr)
    return runs


def _is_of_another_version(path: Path) -> bool:
    try:
        form = str(json.loads(path.read_bytes())["format"])
    except (OSError, ValueError, TypeError, KeyError):
        return False
    return form != FORMAT and form.startswith(FORMAT.rstrip("0123456789"))


def file_facts(files: Mapping[str, list[Path]]) -> dict[str, FileFacts]:
    """For a record: path -> the parameter that named it, its digest and its size in bytes.

    Args:
        files: by parameter.
    """
    named = {path: name for name, paths in files.items() for path in paths}
    return {
        path.as_posix(): {"option": name, "sha256": sha256_file(path), "size": path.stat().st_size}
        for path, name in sorted(named.items())
    }


_DATA_SET_OPTIONS = {
    "tokens",
    "tags",
    "paraphrases",
    "captions",
    "candidates",
    "attention",
    "embeddings",
    "all_languages",
    "ranks",
}
PIECES = "/text/pieces/"
"""The folder of the vocabularies of captioners that are language models."""
SAME_ORIGIN = {
    ("manifest", "data set"): _DATA_SET_OPTIONS | {"query_bank", "before", "after"},
    ("vocabulary", "vocabulary"): {"tokens", "captions", "candidates", "captioner", "start", "word_vectors"},
    ("features", "store of features"): {"embeddings"},
}
"""What a stage reads, and its name for people -> the inputs that must have been made with the same one.

A model may serve another data set.
"""


def check_same_origin(inputs: Mapping[str, FileFacts], makers: Mapping[str, Run]) -> None:
    """Check that what a stage reads belongs together: artefacts to the data set, the vocabulary and the features beside
    them, where shapes and names may fit nevertheless. A file without a record passes.

    Args:
        makers: of the inputs, by :func:`find_makers`.

    Raises:
        UserError: a file was made with another data set, vocabulary or store of features.
    """
    for path, maker in makers.items():
        for (option, what), options in SAME_ORIGIN.items():
            here, there = (_digests(facts, option) for facts in (inputs, {**maker.inputs, **maker.outputs}))
            if inputs[path]["option"] in options and here and there and here != there:
                raise UserError(f"it was made with another {what}", where=path, remedy="read files of one experiment")


def _digests(files: Mapping[str, FileFacts], option: str) -> set[str]:
    """Pieces of words are no vocabulary that others read: a captioner has its own."""
    named = {path: facts for path, facts in files.items() if facts["option"] == option and PIECES not in path}
    return {facts["sha256"] for facts in named.values()}


def check_as_written(inputs: Mapping[str, FileFacts], makers: Mapping[str, Run]) -> None:
    """Check that inputs are unchanged since their makers wrote them. A file without a record passes.

    Raises:
        UserError: a file has changed since its job wrote it.
    """
    for path, maker in makers.items():
        if maker.outputs[path]["sha256"] != inputs[path]["sha256"]:
            raise UserError(
                f"the file is not as {maker.name} wrote it",
                where=path,
                remedy=f"snakemake --forcerun {path} makes it again; to keep your change, delete {maker.path}",
            )


def find_makers(inputs: Mapping[str, FileFacts]) -> dict[str, Run]:
    """The records of the jobs that wrote these files. Of several for one file, the newest counts.

    Args:
        inputs: path -> facts, as a record holds them.
    """
    makers: dict[str, Run] = {}
    for experiment in {root for path in inputs if (root := find_experiment_folder(path)) is not None}:
        for record in (Path(experiment) / RUNS).rglob("[!.]*.json"):
            try:
                run = read_run(record)
            except UserError:  # A record of another format says nothing about these files.
                continue
            for path in run.outputs.keys() & inputs.keys():
                if path not in makers or run.time >= makers[path].time:
                    makers[path] = run
    return makers


def gpu_millijoules() -> tuple[dict[str, int], str]:
    """The energy of each GPU since its driver was loaded, over all programs; and the reason if it cannot be read."""
    if not GPU.exists():
        return {}, "there is no NVIDIA GPU"
    import pynvml  # type: ignore[import-untyped, unused-ignore]

    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(pynvml.nvmlDeviceGetCount())]
        used = [int(pynvml.nvmlDeviceGetTotalEnergyConsumption(each)) for each in handles]
        return {f"gpu {number}": value for number, value in enumerate(used)}, ""
    except pynvml.NVMLError as error:
        return {}, f"NVML: {error}"


def energy_since(start: Mapping[str, int]) -> Energy:
    """The energy since ``start``, an earlier reading of :func:`gpu_millijoules`."""
    now, why = gpu_millijoules()
    joules = {name: round((now[name] - value) / 1000, 1) for name, value in start.items() if name in now}
    return {"joules": joules, "absent": {"gpu": why} if why else {}}
