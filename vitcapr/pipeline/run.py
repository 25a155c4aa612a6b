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
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from vitcapr.data.digests import FileDigests
from vitcapr.errors import Preempted, UserError
from vitcapr.files import canonical_json, remove_remains, sha256_bytes, write_json
from vitcapr.formats.kinds import CHECKPOINT
from vitcapr.pipeline import run_records as records
from vitcapr.pipeline.code import code_hash, job_code
from vitcapr.pipeline.fingerprint import fingerprint, user_files
from vitcapr.pipeline.owner import owned
from vitcapr.pipeline.result_cache import open_result_cache
from vitcapr.pipeline.slurm import requeue
from vitcapr.pipeline.stage import COMMAND, DEVICE, Parameter, Role, Stage, get_dotted
from vitcapr.progress import Reporter, is_first_process, is_started_by_torchrun
from vitcapr.workers import usable_cores

_RESIDENT_MB = 2**20 if sys.platform == "darwin" else 2**10
"""Units of ``ru_maxrss`` in a MB: macOS counts bytes, Linux kB."""
_Made = tuple[dict[str, Any], str | None]
"""The facts of the run that made a result, and when the result was restored from the cache."""


@dataclass(frozen=True)
class Job:
    """A call of a stage.

    Attributes:
        plain: the values of its options, as :meth:`~vitcapr.pipeline.stage.Stage.read` takes them.
        log: a file that receives every progress message.
        digests: knows the digests of the inputs, so that a file at rest is read once.
    """

    stage: Stage
    plain: Mapping[str, Any]
    log: Path | None = None
    digests: FileDigests = field(default_factory=FileDigests)

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
        return code_hash(job_code(self.stage.module, self.stage.result_settings(self.settings)))

    def files(self, role: Role) -> dict[str, list[Path]]:
        """Return the existing files of each parameter."""
        paths = {each.name: each.paths(self.values[each.name]) for each in self.stage.of_role(role)}
        return {name: [path for path in each if path.is_file()] for name, each in paths.items()}

    def inputs(self) -> records.Files:
        """Return the facts of the input files as they are now, by path."""
        return records.file_facts(self.files(Role.INPUT), self.digests.of)

    def result_key(self, made_of: Mapping[str, Any], inputs: records.Files, threads: int) -> str:
        """Return the key of the result in the cache: 32 hexadecimal digits.

        Beside the fingerprint, ``made_of``, the names, order and content of inputs count, without their paths.
        """

        def content(value: Any, parameter: Parameter) -> Any:
            if isinstance(value, dict):
                return [[name, content(each, parameter)] for name, each in value.items()]
            files = [path for path in parameter.paths(value) if path.as_posix() in inputs]
            return [[path.name, inputs[path.as_posix()]["sha256"]] for path in files]

        read = [[each.name, content(self.values[each.name], each)] for each in self.stage.of_role(Role.INPUT)]
        counted = {"stage": self.stage.name, **made_of, "inputs": read, "threads": threads}
        return sha256_bytes(canonical_json(counted).encode())[:32]

    def targets(self) -> dict[str, Path]:
        """Return the outputs by their names in the result cache: ``parameter`` or ``parameter/file``."""
        return {
            f"{parameter.name}/{path.name}" if parameter.files else parameter.name: path
            for parameter in self.stage.of_role(Role.OUTPUT)
            for path in parameter.paths(self.values[parameter.name])
        }

    def say(self, line: str) -> None:
        """Report a line to the terminal and the log."""
        with Reporter(self.log) as report:
            report.line(line)

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
            given = self.stage.of_role(Role.GIVEN)
            passed = {each.name: report if each.type is Reporter else self.code for each in given}
            self.stage(**self.values, **passed)


def run_stage(stage: Stage, /, log: Path | None = None, **values: Any) -> None:
    """Run a stage with the values of its options. Missing values take their defaults.

    A job of an experiment has its log in ``results/<experiment>/logs`` and writes a run record. If its stage is cached,
    it is restored from the result cache if possible, and stored there when it finishes. A command typed by hand writes
    no run record and does not use the result cache.

    Raises:
        UserError: a value is wrong, an input was made with another data set, vocabulary or store of features than the
            others, or a file that a job of an experiment reads changes meanwhile.
    """
    job = Job(stage, values, log)
    if is_started_by_torchrun():
        job.compute()
        return
    inputs = job.inputs()
    writers = records.find_writers(inputs)
    records.check_same_origin(inputs, writers)
    record = None if log is None else records.record_of_log(log)
    try:
        if record is None:
            job.compute()
            _remove_unfinished(job)
            return
        records.check_as_written(inputs, writers)
        with owned(record, job.say) as waited:
            task = _Task(job, record, inputs)
            if not (waited and task.is_finished()):
                made, restored = task.restore() or task.compute()
                task.write_record(made, restored)
            _remove_unfinished(job)
    except Preempted:
        if requeue():
            job.say("Slurm starts this job again, which continues from the saved state")
        raise


class _Task:
    """A job of an experiment with its record, as it is before its stage runs: files may change during hours of work.

    ``facts`` are the fields of the record that decide the result, ``own_files`` the files of the user that it reads.
    """

    def __init__(self, job: Job, record: Path, inputs: records.Files) -> None:
        self.job, self.record, stage = job, record, job.stage
        self.results = next(folder.parent.parent for folder in record.parents if folder.name == records.RUNS)
        self.own_files = user_files(stage, job.values.get("settings"), job.plain)
        made_of = self._fingerprint()
        read = {each.name: each.names(job.values[each.name]) for each in stage.of_role(Role.INPUT)}
        self.facts = {
            "code": job_code(stage.module, made_of["settings"]),
            "settings": job.settings,
            "values": stage.values_of(job.plain),
            "files": made_of["files"],
            "names": {name: names for name, names in read.items() if names},
            "inputs": inputs,
        }
        self.key = job.result_key(made_of, inputs, threads())
        self.cache = open_result_cache(self.results) if stage.cached else None

    def _fingerprint(self) -> dict[str, Any]:
        return fingerprint(self.job.stage, self.job.values.get("settings"), self.job.plain, self.results)

    def is_finished(self) -> bool:
        """Return whether another process has done exactly this job, and its outputs are whole."""
        try:
            run = records.read_run(self.record)
        except UserError:
            return False
        now = {**self.facts, "outputs": records.file_facts(self.job.files(Role.OUTPUT))}
        if any(getattr(run, name) != value for name, value in now.items()):
            return False
        self.job.say(f"finished meanwhile by {run.made['user']} on {run.made['host']}")
        return True

    def restore(self) -> _Made | None:
        """Restore the result from the cache; None if it is not there."""
        entry = None if self.cache is None else self.cache.find(self.key)
        if entry is None:
            return None
        started, made = _now(), dict(entry.run)
        entry.restore(self.job.targets())
        self.job.say(f"restored from the result cache, {entry.path}: made on {made['host']} in {made['seconds']:.0f} s")
        return made, started

    def compute(self) -> _Made:
        """Run the stage; a UserError if a file that it reads changes meanwhile."""
        started, begun = _now(), time.monotonic()
        self.job.compute()
        made = {"started": started, **measure(time.monotonic() - begun)}
        inputs, files = self.job.inputs(), self._fingerprint()["files"]
        changed = [path for path, facts in self.facts["inputs"].items() if inputs.get(path) != facts]
        changed += [str(path) for key, path in self.own_files.items() if files.get(key) != self.facts["files"].get(key)]
        if changed:
            what = f"the file changed while {self.job.stage.name} ran"
            raise UserError(what, where=changed[0], remedy="run the same command again")
        return made, None

    def write_record(self, made: Mapping[str, Any], restored: str | None) -> None:
        """Store a new result in the cache, and write the run record."""
        job, cache = self.job, self.cache
        targets = {name: path for name, path in job.targets().items() if path.is_file()}
        if cache is not None and restored is None:
            try:
                cache.store(self.key, targets, made)
            except (OSError, UserError) as error:  # The stage has succeeded, so the job does not fail.
                job.say(f"warning: not stored in the result cache, {cache.root}: {error}")
        content = {
            "format": records.FORMAT,
            "stage": job.stage.name,
            "command": shlex.join(job.stage.command(job.plain, job.log)),
            **self.facts,
            "outputs": records.file_facts(job.files(Role.OUTPUT)),
            "made": made,
            "result_cache": None if cache is None else {"key": self.key, "restored": restored},
        }
        write_json(self.record, content)
        for written in (*targets.values(), self.record):
            remove_remains(written)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _remove_unfinished(job: Job) -> None:
    """Remove what a finished training would continue from: four times the bytes of its model.

    Not before the record and the entry of the result cache stand: until then, a job that is killed ends at once when
    it starts again.
    """
    for parameter in job.stage.of_role(Role.OUTPUT):
        if parameter.files and (folder := job.values[parameter.name]) is not None:
            shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)


def measure(seconds: float) -> dict[str, Any]:
    """Return the facts of :class:`vitcapr.pipeline.run_records.Made` about this process, without its start."""
    import psutil

    processor = _search(r"model name\s*: (.+)", "/proc/cpuinfo") or platform.machine()
    own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    # ru_maxrss includes the process that started this one; only Linux separates the two.
    peak = max(int(_search(r"VmHWM:\s+(\d+) kB", "/proc/self/status") or own), children)
    return {
        "user": psutil.Process().username(),
        "host": socket.gethostname(),
        "platform": f"{platform.platform()}, {processor}, {usable_cores()} cores",
        "seconds": round(seconds, 2),
        "cpu_seconds": round(sum(os.times()[:4]), 2),
        "threads": threads(),
        "peak_memory_mb": round(peak / _RESIDENT_MB),
        "python": platform.python_version(),
    }


def threads() -> int:
    """Return the threads of torch and numpy, which decide how sums are rounded. Snakemake sets them for a job."""
    return int(os.environ.get("OMP_NUM_THREADS") or usable_cores())


def _search(pattern: str, file: str) -> str | None:
    """Return the first group of a pattern in a file of Linux; None on another system."""
    with suppress(OSError):
        if match := re.search(pattern, Path(file).read_text(encoding="utf-8")):
            return match[1]
    return None
