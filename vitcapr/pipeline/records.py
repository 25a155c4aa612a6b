"""Run records: the stage, inputs, settings, machine and cost of every artefact.

An output holds no time and no host, because the same work has to give the same bytes. Time and host stand in a record
beside the outputs, ``results/<experiment>/runs/<rule>/<wildcards>.json``. Every job has one, named like its log.
"""

import contextlib
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.records import read_format, reading

FORMAT = "vitcapr-run-2"
RESULTS, RUNS, LOGS = "results", "runs", "logs"
CODE_DIGESTS = ".code.json"
"""In the folder of all results: the digests that :func:`~vitcapr.pipeline.code.stage_code` remembers."""
POWERCAP = Path("/sys/class/powercap")
GPU = Path("/dev/nvidiactl")
_SECONDS = 30.0
"""Between two readings: a counter of 65 kJ, the smallest there is, lasts longer at any power."""


class FileFacts(TypedDict):
    """A file that a job read or wrote: the parameter that named it, its digest and its size in bytes."""

    option: str
    sha256: str
    size: int


class Energy(TypedDict):
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
    """

    model_config = ConfigDict(frozen=True, strict=True)

    path: Path
    stage: str
    command: str
    code: dict[str, str]
    settings: dict[str, Any]
    values: dict[str, Any]
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
        return next((root_of(path) for path in self.outputs), None)

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


def root_of(path: str) -> str | None:
    """The experiment's folder that a path of a rule leads into; None for a path that leads into none.

    A path with ``..`` and an absolute path lead into none.

    >>> root_of("study/results/demo/text/vocabulary.json")
    'study/results/demo'
    >>> root_of("results/demo/../other/data") is None
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
            if run.folder is None or root_of(output) != run.folder:
                raise ValueError(f"it names an output outside its experiment, {output!r}")
        return run


def read_runs(experiment: Path) -> list[Run]:
    """The records of all jobs of an experiment, by name."""
    return [read_run(path) for path in sorted((experiment / RUNS).rglob("[!.]*.json"))]


def file_facts(files: Mapping[str, list[Path]]) -> dict[str, dict[str, Any]]:
    """For a record: path -> the parameter that named it, its digest and its size in bytes.

    Args:
        files: by parameter.
    """
    named = {path: name for name, paths in files.items() for path in paths}
    return {
        path.as_posix(): {"option": name, "sha256": sha256_file(path), "size": path.stat().st_size}
        for path, name in sorted(named.items())
    }


def check_as_written(inputs: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that inputs are unchanged since jobs wrote them. A file without a record passes.

    Of the records that name a path as an output, the newest counts.

    Args:
        inputs: path -> ``sha256`` and other facts, as a record holds them.

    Raises:
        UserError: a file has changed since its job wrote it.
    """
    makers: dict[str, Run] = {}
    for experiment in {root for path in inputs if (root := root_of(path)) is not None}:
        for record in (Path(experiment) / RUNS).rglob("[!.]*.json"):
            try:
                run = read_run(record)
            except UserError:  # A record of another format says nothing about these files.
                continue
            for path in run.outputs.keys() & inputs.keys():
                if path not in makers or run.time >= makers[path].time:
                    makers[path] = run
    for path, maker in makers.items():
        if maker.outputs[path]["sha256"] != inputs[path]["sha256"]:
            raise UserError(
                f"the file is not as {maker.name} wrote it",
                where=path,
                remedy=f"snakemake --forcerun {path} makes it again; to keep your change, delete {maker.path}",
            )


class Meter:
    """The energy that the machine uses while a stage runs: RAPL for the CPU, NVML for GPUs.

    A context manager that reads the counters at its start, periodically and at its end.

    Attributes:
        joules: by counter (``cpu 0``, ``gpu 0``); what the whole device used, other programs' share included.
        absent: why there is no number, by ``cpu`` and ``gpu``.
    """

    def __init__(self, powercap: Path = POWERCAP) -> None:
        self.joules: dict[str, float] = {}
        self.absent: dict[str, str] = {}
        self._zones = _readable_zones(powercap)
        self._last: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        if not self._zones:
            self.absent["cpu"] = f"no counter can be read in {powercap}"

    def __enter__(self) -> Self:
        self._read()
        self._gpus = self._gpu_counters()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self._read()
        now = self._gpu_counters() if self._gpus else {}
        self.joules |= {name: (now[name] - start) / 1000 for name, start in self._gpus.items() if name in now}

    def report(self) -> dict[str, Any]:
        """For a run's record: ``joules`` by device, and ``absent``."""
        return {"joules": {name: round(value, 1) for name, value in self.joules.items()}, "absent": self.absent}

    def _watch(self) -> None:
        while not self._over.wait(_SECONDS):
            self._read()

    def _read(self) -> None:
        """Add what each zone used since the last reading; a counter that is smaller than before has wrapped once."""
        for name, zone in self._zones.items():
            now = int((zone / "energy_uj").read_text())
            used = now - self._last.get(name, now)
            if used < 0:
                used += int((zone / "max_energy_range_uj").read_text())
            self.joules[name] = self.joules.get(name, 0.0) + used / 1e6
            self._last[name] = now

    def _gpu_counters(self) -> dict[str, int]:
        """Millijoules since the driver was loaded, by GPU."""
        if not GPU.exists():
            self.absent["gpu"] = "there is no NVIDIA GPU"
            return {}
        import pynvml  # type: ignore[import-untyped, unused-ignore]

        try:
            pynvml.nvmlInit()
            numbers = range(pynvml.nvmlDeviceGetCount())
            handles = {f"gpu {number}": pynvml.nvmlDeviceGetHandleByIndex(number) for number in numbers}
            return {name: int(pynvml.nvmlDeviceGetTotalEnergyConsumption(each)) for name, each in handles.items()}
        except pynvml.NVMLError as error:
            self.absent["gpu"] = f"NVML: {error}"
            return {}


def _readable_zones(powercap: Path) -> dict[str, Path]:
    """The packages' zones: ``intel-rapl:0`` is one, ``intel-rapl:0:0`` is a part of it."""
    zones = {}
    for zone in sorted(powercap.glob("intel-rapl:*")):
        number = zone.name.partition(":")[2]
        if ":" not in number:
            with contextlib.suppress(OSError, ValueError):
                int((zone / "energy_uj").read_text())
                zones[f"cpu {number}"] = zone
    return zones
