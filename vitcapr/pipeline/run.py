"""Runs a stage, in one process or several, with a run record. Results are restored from the result cache if
possible."""

import getpass
import io
import os
import platform
import resource
import shlex
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from vitcapr.config.base import StageSettings, parse_settings
from vitcapr.errors import UserError
from vitcapr.files import remove_remains, write_json
from vitcapr.pipeline.code import LIBRARIES, code_hash, stage_code
from vitcapr.pipeline.energy import Meter
from vitcapr.pipeline.intact import check_as_written
from vitcapr.pipeline.records import CODE_DIGESTS, FORMAT, described, experiment_of_log, record_of_log
from vitcapr.pipeline.result_cache import ResultCache, key_of, result_cache_of
from vitcapr.pipeline.stage import CodeHash, Role, Stage, get_dotted
from vitcapr.process import is_first_process, is_started_by_torchrun
from vitcapr.progress import Reporter


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
        return None if model is None else parse_settings(model, str(self._of(Role.SETTINGS)["settings"]))

    @cached_property
    def canonical(self) -> dict[str, Any]:
        return {} if self.settings is None else self.settings.canonical()

    @cached_property
    def experiment(self) -> Path | None:
        """The folder of the experiment; None if no rule runs the command."""
        return None if self.log is None else experiment_of_log(self.log)

    @cached_property
    def code(self) -> dict[str, str]:
        remembered = None if self.experiment is None else self.experiment.parent / CODE_DIGESTS
        return stage_code(self.stage.module, remembered=remembered)

    def check_inputs(self) -> None:
        """Raises:
        UserError: an input is a pipe or a device, which could be waited for without end.
        """
        for parameter in self.stage.of_role(Role.INPUT):
            for path in parameter.paths(self.values[parameter.name]):
                if path.exists() and not (path.is_file() or path.is_dir()):
                    raise UserError("neither a file nor a folder", where=path, remedy=f"correct {parameter.option}")

    @cached_property
    def inputs(self) -> dict[str, dict[str, Any]]:
        return described(self._files(Role.INPUT))

    @property
    def outputs(self) -> dict[str, dict[str, Any]]:
        return described(self._files(Role.OUTPUT))

    @property
    def plain_values(self) -> dict[str, Any]:
        return {name: value for name, value in self._of(Role.VALUE).items() if value is not None}

    @property
    def targets(self) -> dict[str, Path]:
        """The outputs to restore: the file or folder of each parameter."""
        return {name: value for name, value in self._of(Role.OUTPUT).items() if value is not None}

    @property
    def finished(self) -> dict[str, Path]:
        """The outputs by their names in the result cache: ``parameter`` or ``parameter/file``."""
        return {
            f"{name}/{path.name}" if self.stage.parameters[name].files else name: path
            for name, paths in self._files(Role.OUTPUT).items()
            for path in paths
        }

    @cached_property
    def key(self) -> str:
        """The key in the result cache: a digest of everything that determines the result. Paths of files do not
        count."""
        values = {name: value for name, value in self.plain_values.items() if name not in self.stage.execution_only}
        inputs = [[facts["option"], Path(path).name, facts["sha256"]] for path, facts in self.inputs.items()]
        settings = self.stage.result_settings(self.canonical)
        stage = {"stage": self.stage.name, "code": self.code}
        return key_of({**stage, "settings": settings, "values": values, "inputs": sorted(inputs)})

    def compute(self) -> None:
        """Call the stage. If it trains in several processes, call it in each of them."""
        if not is_started_by_torchrun() and self._processes > 1:
            from vitcapr.training.processes import run_processes

            run_processes(self.stage.name, self._processes, self._device, sys.argv[1:])
            return
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

    def join_processes_and_compute(self) -> None:
        """Join the process group that torchrun started, then call the stage."""
        from vitcapr.training.processes import joined_processes

        with joined_processes(self._device):
            self.compute()

    @property
    def _device(self) -> str:
        return "cpu" if self.stage.device is None else str(get_dotted(self.canonical, self.stage.device))

    @property
    def _processes(self) -> int:
        return 1 if self.stage.processes is None else int(get_dotted(self.canonical, self.stage.processes))

    def _files(self, role: Role) -> dict[str, list[Path]]:
        """The existing files of each parameter."""
        named = {name: self.stage.parameters[name].paths(value) for name, value in self._of(role).items()}
        return {name: [path for path in paths if path.is_file()] for name, paths in named.items()}

    def _of(self, role: Role) -> dict[str, Any]:
        return {parameter.name: self.values[parameter.name] for parameter in self.stage.of_role(role)}


def run_stage(stage: Stage, /, log: Path | None = None, **values: Any) -> None:
    """Run a stage with the values of its command line. Missing values take their defaults.

    A job of an experiment has its log in ``results/<experiment>/logs`` and writes a run record. If its stage is cached,
    it is restored from the result cache if possible, and stored there when it finishes. A command typed by hand writes
    no run record and does not use the result cache.
    """
    defaults = {name: parameter.default for name, parameter in stage.parameters.items() if not parameter.required}
    job = Job(stage, {"settings": "{}", **defaults, **values}, log)
    job.check_inputs()
    if is_started_by_torchrun():
        job.join_processes_and_compute()
    elif job.experiment is None:
        job.compute()
    else:
        _run_recorded(job, job.experiment)


def _run_recorded(job: Job, experiment: Path) -> None:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    code, inputs = job.code, job.inputs  # before the stage runs, because files may change during hours of work
    check_as_written(inputs)
    cache = result_cache_of(experiment.parent) if job.stage.cached else None
    entry = None if cache is None else cache.find(job.key)
    if entry is not None:
        entry.restore(job.targets)
        made = dict(entry.run)
        _say(job, f"restored from the result cache, {entry.path}: made on {made['host']} in {made['seconds']:.0f} s")
    else:
        begun = time.monotonic()
        with Meter() as meter:
            job.compute()
        made = _made(started, time.monotonic() - begun, meter)
        if cache is not None:
            _store(cache, job, made)
    restored = started if entry is not None else None
    record = {
        "format": FORMAT,
        "stage": job.stage.name,
        "command": shlex.join(["python", "-m", "vitcapr", "stage", job.stage.name, *sys.argv[1:]]),
        "code": code,
        "settings": job.canonical,
        "values": job.plain_values,
        "inputs": inputs,
        "outputs": job.outputs,
        "made": made,
        "result_cache": None if cache is None else {"key": job.key, "restored": restored},
    }
    path = None if job.log is None else record_of_log(job.log)
    if path is not None:
        write_json(path, record)
    for written in (*job.finished.values(), *([] if path is None else [path])):
        remove_remains(written)


def _store(cache: ResultCache, job: Job, made: Mapping[str, Any]) -> None:
    """Store the outputs. The stage has succeeded, so an error of the cache is reported but does not fail the job."""
    try:
        cache.store(job.key, job.finished, made)
    except (OSError, UserError) as error:
        _say(job, f"warning: not stored in the result cache, {cache.root}: {error}")


def _say(job: Job, line: str) -> None:
    with Reporter(job.log) as report:
        report.line(line)


def _made(started: str, seconds: float, meter: Meter) -> dict[str, Any]:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "user": _user(),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "started": started,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 2),
        "peak_memory_mb": round(max(own.ru_maxrss, children.ru_maxrss) / 1024),
        "energy": meter.report(),
        "python": platform.python_version(),
        "libraries": {name: found for name in sorted(LIBRARIES.values()) if (found := _version(name))},
    }


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
