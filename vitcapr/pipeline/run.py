"""Running of a stage, in one process or several.

A rule's job leaves a run record, and is restored from the result cache if possible.
"""

import io
import os
import platform
import re
import resource
import shlex
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from vitcapr.errors import Preempted, UserError
from vitcapr.files import sha256_file
from vitcapr.formats.kinds import CHECKPOINT
from vitcapr.pipeline import run_records as records
from vitcapr.pipeline.owner import owned
from vitcapr.pipeline.slurm import requeue
from vitcapr.pipeline.stage import COMMAND, DEVICE, Parameter, Role, Stage, get_dotted
from vitcapr.progress import Reporter, is_first_process, is_started_by_torchrun
from vitcapr.workers import usable_cores

_RESIDENT_MB = 2**20 if sys.platform == "darwin" else 2**10
"""Units of ``ru_maxrss`` in a MB: macOS counts bytes, Linux kB."""


@dataclass(frozen=True)
class Job:
    """A call of a stage.

    Attributes:
        plain: the values of its options, as :meth:`~vitcapr.pipeline.stage.Stage.read` takes them.
        log: a file that receives every progress message.
    """

    stage: Stage
    plain: Mapping[str, Any]
    log: Path | None = None

    @cached_property
    def values(self) -> dict[str, Any]:
        """The value of every option."""
        return self.stage.read(self.plain)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings as plain values, defaults included."""
        settings = self.values.get("settings")
        return {} if settings is None else dict(settings.canonical())

    @property
    def code(self) -> str:
        """The hash of the stage's code."""
        from vitcapr.pipeline.code import code_hash, job_code

        return code_hash(job_code(self.stage.module, self.stage.result_settings(self.settings)))

    def files(self, role: Role) -> dict[str, list[Path]]:
        """Return the existing files of each parameter."""
        paths = {each.name: each.paths(self.values[each.name]) for each in self.stage.of_role(role)}
        return {name: [path for path in each if path.is_file()] for name, each in paths.items()}

    def compute(self) -> None:
        """Call the stage. If it trains in several processes, call it in each of them."""
        settings, stage = self.settings, self.stage
        device = self.values.get(DEVICE, "cpu")
        if is_started_by_torchrun():
            from vitcapr.encoders.devices import resolve_device
            from vitcapr.training.distributed import joined

            with joined(resolve_device(device)):
                self._call()
        elif stage.processes is not None and (processes := int(get_dotted(settings, stage.processes))) > 1:
            from vitcapr.training.distributed import run_processes

            run_processes(stage.name, processes, device, stage.command(self.plain, self.log)[len(COMMAND) + 1 :])
        else:
            self._call()

    def _call(self) -> None:
        # With several processes, only process rank 0 reports.
        with Reporter(self.log) if is_first_process() else Reporter(stream=io.StringIO()) as report:
            passed: dict[str, Any] = {}
            for parameter in self.stage.of_role(Role.GIVEN):
                passed[parameter.name] = report if parameter.type is Reporter else self.code
            self.stage(**self.values, **passed)


def run_stage(stage: Stage, /, log: Path | None = None, **values: Any) -> None:
    """Run a stage with the values of its options. Missing values take their defaults.

    A job of an experiment has its log in ``results/<experiment>/logs`` and writes a run record. If its stage is cached,
    it is restored from the result cache if possible, and stored there when it finishes. A command typed by hand writes
    no run record and does not use the result cache.

    Raises:
        UserError: a value is wrong, or an input was made with another data set, vocabulary or store of features than
            the others.
    """
    job = Job(stage, values, log)
    if is_started_by_torchrun():
        job.compute()
        return
    inputs = records.file_facts(job.files(Role.INPUT))
    writers = records.find_writers(inputs)
    records.check_same_origin(inputs, writers)
    record = None if log is None else records.record_of_log(log)
    try:
        if record is None:
            job.compute()
            _remove_unfinished(job)
            return
        records.check_as_written(inputs, writers)
        with owned(record, lambda line: _say(job, line)) as waited:
            _run_recorded(job, record, inputs, waited)
            _remove_unfinished(job)
    except Preempted:
        if requeue():
            _say(job, "Slurm starts this job again, which continues from the saved state")
        raise


def _run_recorded(job: Job, record: Path, inputs: records.Files, waited: bool) -> None:
    """Run a job, or restore its results, and write its record.

    Args:
        inputs: the facts of the input files, from before the stage runs: files may change during hours of work.
        waited: another process has worked on this job until now, and may have finished it.

    Raises:
        UserError: an input or a file of the user changes while the stage runs.
    """
    from vitcapr.files import remove_remains, write_json
    from vitcapr.pipeline.code import job_code
    from vitcapr.pipeline.fingerprint import fingerprint, user_files
    from vitcapr.pipeline.result_cache import cache_key, open_result_cache

    stage, settings = job.stage, job.values.get("settings")
    results = next(folder.parent.parent for folder in record.parents if folder.name == records.RUNS)
    own_files = user_files(stage, settings, job.plain)
    made_of = fingerprint(stage, settings, job.plain, results)
    code, targets = job_code(stage.module, made_of["settings"]), find_targets(job)
    expected: dict[str, Any] = {"code": code, "settings": job.settings, "values": stage.values_of(job.plain)}
    names = {each.name: names for each in stage.of_role(Role.INPUT) if (names := each.names(job.values[each.name]))}
    expected |= {"files": made_of["files"], "names": names, "inputs": inputs}
    if waited and (maker := _finished_by(record, expected, targets)):
        _say(job, f"finished meanwhile by {maker}")
        return
    key = cache_key({"stage": stage.name, **made_of, "inputs": read_by_name(job, inputs), "threads": threads()})
    cache = open_result_cache(results) if stage.cached else None
    entry = None if cache is None else cache.find(key)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    if entry is not None:
        entry.restore(targets)
        made = dict(entry.run)
        _say(job, f"restored from the result cache, {entry.path}: made on {made['host']} in {made['seconds']:.0f} s")
    else:
        begun = time.monotonic()
        job.compute()
        made = {"started": started, **measure(time.monotonic() - begun)}
        now = records.file_facts(job.files(Role.INPUT))
        changed = [path for path, facts in inputs.items() if now.get(path) != facts]
        digests = fingerprint(stage, settings, job.plain, results)["files"]
        changed += [str(path) for name, path in own_files.items() if digests[name] != made_of["files"].get(name)]
        if changed:
            what = f"the file changed while {stage.name} ran"
            raise UserError(what, where=changed[0], remedy="run the same command again")
        if cache is not None:
            try:
                cache.store(key, _existing(targets), made)
            except (OSError, UserError) as error:  # The stage has succeeded, so the job does not fail.
                _say(job, f"warning: not stored in the result cache, {cache.root}: {error}")
    content = {
        "format": records.FORMAT,
        "stage": stage.name,
        "command": shlex.join(stage.command(job.plain, job.log)),
        **expected,
        "outputs": records.file_facts(job.files(Role.OUTPUT)),
        "made": made,
        "result_cache": None if cache is None else {"key": key, "restored": started if entry is not None else None},
    }
    write_json(record, content)
    for written in (*_existing(targets).values(), record):
        remove_remains(written)


def _finished_by(record: Path, expected: Mapping[str, Any], targets: Mapping[str, Path]) -> str:
    """Name who has done exactly this job, if its outputs are whole; else return an empty string."""
    try:
        run = records.read_run(record)
    except UserError:
        return ""
    same = all(getattr(run, name) == value for name, value in expected.items())
    outputs = {path.as_posix(): path for path in targets.values()}
    whole = run.outputs.keys() == outputs.keys() and all(
        path.is_file() and sha256_file(path) == run.outputs[name]["sha256"] for name, path in outputs.items()
    )
    return f"{run.made['user']} on {run.made['host']}" if same and whole else ""


def _remove_unfinished(job: Job) -> None:
    """Remove what a finished training would continue from: four times the bytes of its model.

    Not before the record and the entry of the result cache stand: until then, a job that is killed ends at once when
    it starts again.
    """
    for parameter in job.stage.of_role(Role.OUTPUT):
        if parameter.files and (folder := job.values[parameter.name]) is not None:
            shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def find_targets(job: Job) -> dict[str, Path]:
    """Return the outputs by their names in the result cache: ``parameter`` or ``parameter/file``."""
    return {
        f"{parameter.name}/{path.name}" if parameter.files else parameter.name: path
        for parameter in job.stage.of_role(Role.OUTPUT)
        for path in parameter.paths(job.values[parameter.name])
    }


def read_by_name(job: Job, inputs: records.Files) -> list[Any]:
    """Return the inputs as they count for the result cache: names, order and content, without paths."""

    def content(value: Any, parameter: Parameter) -> Any:
        if isinstance(value, dict):
            return [[name, content(each, parameter)] for name, each in value.items()]
        files = [path for path in parameter.paths(value) if path.as_posix() in inputs]
        return [[path.name, inputs[path.as_posix()]["sha256"]] for path in files]

    return [[each.name, content(job.values[each.name], each)] for each in job.stage.of_role(Role.INPUT)]


def _existing(targets: Mapping[str, Path]) -> dict[str, Path]:
    return {name: path for name, path in targets.items() if path.is_file()}


def _say(job: Job, line: str) -> None:
    with Reporter(job.log) as report:
        report.line(line)


def measure(seconds: float) -> dict[str, Any]:
    """Return the facts of :class:`vitcapr.pipeline.run_records.Made` about this process, without its start."""
    import psutil

    processor = _search(r"model name\s*: (.+)", "/proc/cpuinfo") or platform.machine()
    own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "user": psutil.Process().username(),
        "host": socket.gethostname(),
        "platform": f"{platform.platform()}, {processor}, {usable_cores()} cores",
        "seconds": round(seconds, 2),
        "cpu_seconds": round(sum(os.times()[:4]), 2),
        "threads": threads(),
        "peak_memory_mb": round(max(_peak_memory(own), children) / _RESIDENT_MB),
        "python": platform.python_version(),
    }


def threads() -> int:
    """Return the threads of torch and numpy, which decide how sums are rounded. Snakemake sets them for a job."""
    return int(os.environ.get("OMP_NUM_THREADS") or usable_cores())


def _search(pattern: str, file: str) -> str | None:
    """Return the first group of a pattern in a file of Linux; None on another system."""
    try:
        match = re.search(pattern, Path(file).read_text(encoding="utf-8"))
    except OSError:
        return None
    return match[1] if match else None


def _peak_memory(resident: int) -> int:
    """Return the peak memory of this process, in the unit of ``ru_maxrss``.

    ``resident``, its ``ru_maxrss``, includes the process that started it; only Linux separates the two.
    """
    return int(_search(r"VmHWM:\s+(\d+) kB", "/proc/self/status") or resident)
