"""Runs a stage, in one process or several. A rule's job leaves a run record (:mod:`vitcapr.pipeline.recorded`)."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.pipeline import records
from vitcapr.pipeline.stage import DEVICE, JOB, Role, Stage, get_dotted, job_text
from vitcapr.progress import Reporter, is_first_process, is_started_by_torchrun


@dataclass(frozen=True)
class Job:
    """One call of a stage.

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
    def arguments(self) -> list[str]:
        """The command line, after ``vitcapr stage NAME``."""
        return [f"--{JOB}", job_text(self.plain), *(() if self.log is None else ("--log", str(self.log)))]

    @property
    def code(self) -> str:
        """The hash of the stage's code."""
        from vitcapr.pipeline.code import code_hash, job_code

        return code_hash(job_code(self.stage.module, self.stage.result_settings(self.settings)))

    def files(self, role: Role) -> dict[str, list[Path]]:
        """The existing files of each parameter."""
        paths = {parameter.name: parameter.paths(self.values[parameter.name]) for parameter in self.stage.of_role(role)}
        return {name: [path for path in each if path.is_file()] for name, each in paths.items()}

    def check_inputs(self) -> None:
        """Raises:
        UserError: an input is a pipe or a device, which could be waited for without end.
        """
        for parameter in self.stage.of_role(Role.INPUT):
            for path in parameter.paths(self.values[parameter.name]):
                if path.exists() and not (path.is_file() or path.is_dir()):
                    raise UserError("neither a file nor a folder", where=path, remedy=f"correct {parameter.option}")

    def compute(self) -> None:
        """Call the stage. If it trains in several processes, call it in each of them."""
        settings, stage = self.settings, self.stage
        device = self.values.get(DEVICE, "cpu")
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
    job.check_inputs()
    if is_started_by_torchrun():
        job.compute()
        return
    inputs = records.file_facts(job.files(Role.INPUT))
    writers = records.find_writers(inputs)
    records.check_same_origin(inputs, writers)
    record = None if log is None else records.record_of_log(log)
    if record is None:
        job.compute()
    else:
        from vitcapr.pipeline.recorded import run_recorded

        records.check_as_written(inputs, writers)
        run_recorded(job, record, inputs)
