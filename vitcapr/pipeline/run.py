"""Runs a stage, in one process or several, with a run record. Results are restored from the result cache if
possible."""

import getpass
import io
import os
import platform
import re
import resource
import shlex
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from vitcapr.config.base import StageSettings
from vitcapr.config.reading import parse_settings
from vitcapr.errors import UserError
from vitcapr.files import remove_remains, write_json
from vitcapr.pipeline import records
from vitcapr.pipeline.code import code_hash, job_code
from vitcapr.pipeline.fingerprint import file_digests, fingerprint, user_files
from vitcapr.pipeline.result_cache import cache_key, open_result_cache
from vitcapr.pipeline.stage import COMMAND, CodeHash, Role, Stage, get_dotted
from vitcapr.plugins import check_reads
from vitcapr.progress import Reporter, is_first_process, is_started_by_torchrun


@dataclass(frozen=True)
class Job:
    """One call of a stage.

    Attributes:
        values: the arguments of the stage by parameter; settings as text.
        log: a file that receives every progress message.
    """

    stage: Stage
    values: Mapping[str, Any]
    log: Path | None

    @cached_property
    def settings(self) -> StageSettings | None:
        model = self.stage.settings
        return None if model is None else parse_settings(model, str(self.values["settings"]))

    @cached_property
    def canonical(self) -> dict[str, Any]:
        return {} if self.settings is None else self.settings.canonical()

    @cached_property
    def record(self) -> Path | None:
        """The path of the run record; None if no rule runs the command."""
        return None if self.log is None else records.record_of_log(self.log)

    @cached_property
    def results(self) -> Path | None:
        """The folder of all results; None if no rule runs the command."""
        parents = () if self.record is None else self.record.parents
        return next((folder.parent.parent for folder in parents if folder.name == records.RUNS), None)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """All that determines the result except the inputs, made before the stage runs: files may change meanwhile."""
        assert self.results is not None
        return fingerprint(self.stage, self.settings, self.values, self.results)

    @property
    def user_files(self) -> dict[str, Path]:
        return user_files(self.stage, self.settings, self.values)

    @cached_property
    def code(self) -> dict[str, str]:
        return job_code(self.stage.module, self.stage.result_settings(self.canonical))

    @cached_property
    def inputs(self) -> dict[str, records.FileFacts]:
        return self.read_inputs()

    @cached_property
    def writers(self) -> dict[str, records.Run]:
        """The records of the jobs that wrote the inputs."""
        return records.find_writers(self.inputs)

    def read_inputs(self) -> dict[str, records.FileFacts]:
        return records.file_facts(self._files(Role.INPUT))

    @property
    def arguments(self) -> list[str]:
        """The command line, after ``vitcapr stage NAME``."""
        return [*self.stage.arguments(self.values), *(() if self.log is None else ("--log", str(self.log)))]

    @property
    def plain_values(self) -> dict[str, Any]:
        names = (parameter.name for parameter in self.stage.of_role(Role.VALUE))
        return {name: self.values[name] for name in names if self.values[name] is not None}

    @property
    def targets(self) -> dict[str, Path]:
        """The outputs by their names in the result cache: ``parameter`` or ``parameter/file``."""
        return {
            f"{parameter.name}/{path.name}" if parameter.files else parameter.name: path
            for parameter in self.stage.of_role(Role.OUTPUT)
            for path in parameter.paths(self.values[parameter.name])
        }

    @property
    def finished(self) -> dict[str, Path]:
        """The targets that exist."""
        return {name: path for name, path in self.targets.items() if path.is_file()}

    @cached_property
    def key(self) -> str:
        """The key in the result cache: a digest of everything that determines the result. Paths of files do not
        count, but their names and their order do; the number of threads does, because it decides how sums are
        rounded."""
        inputs = [
            [parameter.name, name, path.name, self.inputs[path.as_posix()]["sha256"]]
            for parameter in self.stage.of_role(Role.INPUT)
            for name, path in parameter.named(self.values[parameter.name])
            if path.as_posix() in self.inputs
        ]
        return cache_key({"stage": self.stage.name, **self.fingerprint, "inputs": inputs, "threads": threads()})

    def check_inputs(self) -> None:
        """Raises:
        UserError: an input is a pipe or a device, which could be waited for without end, or was made with another data
            set, vocabulary or store of features than the others.
        """
        for parameter in self.stage.of_role(Role.INPUT):
            for path in parameter.paths(self.values[parameter.name]):
                if path.exists() and not (path.is_file() or path.is_dir()):
                    raise UserError("neither a file nor a folder", where=path, remedy=f"correct {parameter.option}")
        if not is_started_by_torchrun():
            records.check_same_origin(self.inputs, self.writers)

    def compute(self) -> None:
        """Call the stage. If it trains in several processes, call it in each of them."""
        settings, stage = self.canonical, self.stage
        device = "cpu" if stage.device is None else str(get_dotted(settings, stage.device))
        if is_started_by_torchrun():
            from vitcapr.encoders.precision import resolve_device
            from vitcapr.training.distributed import joined

            with joined(resolve_device(device)):
                self._call()
        elif stage.processes is not None and (processes := int(get_dotted(settings, stage.processes))) > 1:
            from vitcapr.training.processes import run_processes

            run_processes(stage.name, processes, device, self.arguments)
        else:
            self._call()

    def _call(self) -> None:
        arguments = {name: value for name, value in self.values.items() if name in self.stage.parameters}
        # With several processes, only process rank 0 reports.
        with Reporter(self.log) if is_first_process() else Reporter(stream=io.StringIO()) as report:
            for parameter in self.stage.of_role(Role.SETTINGS, Role.GIVEN):
                if parameter.type is Reporter:
                    arguments[parameter.name] = report
                elif parameter.type is CodeHash:
                    arguments[parameter.name] = code_hash(self.code)
                else:
                    arguments[parameter.name] = self.settings
            self.stage(**arguments)

    def say(self, line: str) -> None:
        with Reporter(self.log) as report:
            report.line(line)

    def outputs(self) -> dict[str, records.FileFacts]:
        return records.file_facts(self._files(Role.OUTPUT))

    def _files(self, role: Role) -> dict[str, list[Path]]:
        """The existing files of each parameter."""
        named = {parameter.name: parameter.paths(self.values[parameter.name]) for parameter in self.stage.of_role(role)}
        return {name: [path for path in paths if path.is_file()] for name, paths in named.items()}


def run_stage(stage: Stage, /, log: Path | None = None, **values: Any) -> None:
    """Run a stage with the values of its command line. Missing values take their defaults.

    A job of an experiment has its log in ``results/<experiment>/logs`` and writes a run record. If its stage is cached,
    it is restored from the result cache if possible, and stored there when it finishes. A command typed by hand writes
    no run record and does not use the result cache.
    """
    defaults = {name: parameter.default for name, parameter in stage.parameters.items() if not parameter.required}
    job = Job(stage, {"settings": "{}", **defaults, **values}, log)
    job.check_inputs()
    if job.record is None or job.results is None or is_started_by_torchrun():
        job.compute()
    else:
        _run_recorded(job, job.record, job.results)


def _run_recorded(job: Job, record: Path, results: Path) -> None:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    key_parts, inputs = job.fingerprint, job.inputs  # before the stage runs: files may change during hours of work
    records.check_as_written(inputs, job.writers)
    cache = open_result_cache(results) if job.stage.cached else None
    entry = None if cache is None else cache.find(job.key)
    if entry is not None:
        entry.restore(job.targets)
        made = dict(entry.run)
        job.say(f"restored from the result cache, {entry.path}: made on {made['host']} in {made['seconds']:.0f} s")
    else:
        begun = time.monotonic()
        counted = records.gpu_joules()
        job.compute()
        now = job.read_inputs()
        changed = [path for path, facts in inputs.items() if now.get(path) != facts]
        before, files = key_parts["files"], file_digests(job.user_files, results)
        changed += [str(path) for key, path in job.user_files.items() if files[key] != before.get(key)]
        if changed:
            what = f"the file changed while {job.stage.name} ran"
            raise UserError(what, where=changed[0], remedy="run the same command again")
        check_reads(job.code, [*map(Path, inputs), *job.targets.values(), *job.user_files.values()])
        made = _made(started, time.monotonic() - begun, counted)
        if cache is not None:
            try:
                cache.store(job.key, job.finished, made)
            except (OSError, UserError) as error:  # The stage has succeeded, so the job does not fail.
                job.say(f"warning: not stored in the result cache, {cache.root}: {error}")
    content = {
        "format": records.FORMAT,
        "stage": job.stage.name,
        "command": shlex.join([*COMMAND, job.stage.name, *job.arguments]),
        "code": job.code,
        "settings": job.canonical,
        "values": job.plain_values,
        "files": key_parts["files"],
        "inputs": inputs,
        "outputs": job.outputs(),
        "made": made,
        "result_cache": None if cache is None else {"key": job.key, "restored": started if entry is not None else None},
    }
    write_json(record, content)
    for written in (*job.finished.values(), record):
        remove_remains(written)


def _made(started: str, seconds: float, counted: float | None) -> dict[str, Any]:
    joules = records.gpu_joules() if counted is not None else None
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "user": _user(),
        "host": socket.gethostname(),
        "platform": f"{platform.platform()}, {_processor()}, {len(os.sched_getaffinity(0))} cores",
        "started": started,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 2),
        "threads": threads(),
        "peak_memory_mb": round(max(own.ru_maxrss, children.ru_maxrss) / 1024),
        "joules": None if counted is None or joules is None else round(joules - counted, 1),
        "python": platform.python_version(),
    }


def threads() -> int:
    """How many torch and numpy may use: Snakemake sets the number of a job."""
    return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))


def _processor() -> str:
    """The model of the processor, where the system tells it."""
    try:
        names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
