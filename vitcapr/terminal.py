"""What a run of Snakemake shows: a line for each finished step, the errors, and at the end the scores.

A dry run and the options ``--verbose``, ``--printshellcmds`` and ``--debug-dag`` show Snakemake's own output. A logger
plugin of Snakemake could do the same, but a profile that names it is an error wherever the plugin is not installed, so
the Snakefile calls :func:`show_steps`.
"""

import io
import logging
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snakemake.logging import logger
from snakemake.settings.types import ExecMode
from snakemake_interface_logger_plugins.common import LogEvent

from vitcapr.errors import UserError
from vitcapr.progress import PROGRESS, format_seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

ERROR_LINES = 20
"""Of a failed step's log."""
_LOG_END = 8192
"""Bytes of a log that are read."""
_COUNTED = re.compile(r": (\d+)/\1 ([a-z]+) in \d")
"""The last line of a :class:`~vitcapr.progress.Tracker`."""
_NOTHING = "Nothing to be done"
_CHATTER = (
    *("Assuming unrestricted", "Building DAG", "Using shell", "Select jobs", "Conda environments: ignored"),
    *("Singularity containers: ignored", "host: ", "Complete log(s)", "Group jobs: inactive", "Elapsed time: "),
)
_SHELL = "CalledProcessError in file"
"""The error of a command that failed, with the whole command; the error of its step follows."""
_WITH_SCORES = {"all", "summary", "first_page"}
"""The rules after which the scores are new."""


def show_steps(workflow: Any, results: Path) -> None:
    """Show the steps of this run in place of Snakemake's own output, and at the end the scores in ``results``.

    A handler that the user chose with ``--logger`` stays, and so does the output of the Snakemake that runs one job on
    another machine.

    Args:
        workflow: Snakemake's.
        results: the folder ``results/<experiment>``.
    """
    if workflow.exec_mode != ExecMode.DEFAULT:
        return
    for handler in list(logger.handlers):
        if isinstance(handler, StepHandler):
            handler.results.append(results)
        elif handler.name == "DefaultStreamHandler":
            logger.removeHandler(handler)
            logger.addHandler(StepHandler(handler, workflow.output_settings, results))


@dataclass
class _Step:
    name: str
    rule: str
    log: Path | None
    began: float


class StepHandler(logging.Handler):
    """Shows the records of a run where Snakemake's own handler would.

    Args:
        plain: Snakemake's own handler.
        settings: Snakemake's ``OutputSettings``.
        results: the folder whose scores are shown at the end; more can be added to the attribute of this name.
    """

    def __init__(self, plain: Any, settings: Any, results: Path) -> None:
        super().__init__()
        self.filters = plain.filters
        self.results = [results]
        self._plain, self._settings = plain, settings
        self._detailed = settings.verbose or settings.dryrun or settings.printshellcmds or settings.debug_dag
        self._steps: dict[int, _Step] = {}
        self._done = self._total = 0
        self._ran: set[str] = set()
        self._before: dict[Path, bytes] = {}
        self._began = time.time()
        self._failed = self._closed = self._nothing = False
        self._console: Console | None = None
        self._bar: Progress | None = None
        if not self._detailed:
            os.environ.setdefault(*PROGRESS)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._follow(record)
            if self._detailed:
                self._plain.emit(record)
            else:
                self._show(record)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """End with the scores, if the run has all of its results."""
        if not self._closed:
            self._closed = True
            if self._bar is not None:
                self._bar.stop()
            if not (self._failed or self._settings.dryrun):
                self._show_results()
        super().close()

    def _follow(self, record: logging.LogRecord) -> None:
        """Keep count of the steps."""
        event, told = getattr(record, "event", None), record.__dict__
        if event is LogEvent.RUN_INFO:
            self._total = told["stats"].get("total", 0)
            summaries = [folder / "summary.csv" for folder in self.results]
            self._before = {file: file.read_bytes() for file in summaries if file.is_file()}
        elif event is LogEvent.JOB_INFO:
            wildcards = [str(value) for name, value in told["wildcards"].items() if name != "experiment"]
            log = Path(told["log"][0]) if told["log"] else None
            name = " ".join([told["rule_name"], *wildcards])
            self._steps[told["jobid"]] = _Step(name, told["rule_name"], log, record.created)
        elif event is LogEvent.PROGRESS:
            self._done, self._total = told["done"], told["total"]
        elif event in (LogEvent.JOB_ERROR, LogEvent.GROUP_ERROR, LogEvent.ERROR):
            self._failed = True
        elif event is None and _NOTHING in str(record.msg):
            self._nothing = True

    def _show(self, record: logging.LogRecord) -> None:
        event, told = getattr(record, "event", None), record.__dict__
        if event is LogEvent.RUN_INFO:
            self._print(_steps(self._total))
        elif event is LogEvent.JOB_INFO:
            self._draw()
        elif event is LogEvent.JOB_FINISHED:
            self._finish(told["job_id"], record.created)
        elif event is LogEvent.JOB_ERROR:
            self._print_error(told)
        elif event is LogEvent.ERROR and _SHELL in str(record.msg):
            pass
        elif event in (LogEvent.GROUP_ERROR, LogEvent.ERROR) or record.levelno >= logging.WARNING:
            self._print(self._plain.format(record), style="bold red" if record.levelno >= logging.ERROR else "yellow")
        elif event is None and record.msg and not str(record.msg).startswith(_CHATTER):
            self._print(str(record.msg))

    def _finish(self, jobid: int, now: float) -> None:
        step = self._steps.pop(jobid, None)
        self._done += 1
        if step is not None:
            self._ran.add(step.rule)
            if step.log is not None:
                parts = [step.name, *_counted(step.log), format_seconds(now - step.began)]
                width = len(str(self._total))
                self._print(f"[{self._done:>{width}}/{self._total}] {' · '.join(parts)}")
        self._draw()

    def _print_error(self, told: dict[str, Any]) -> None:
        step = self._steps.pop(told["jobid"], None)
        self._print(f"error in {told['rule_name'] if step is None else step.name}", style="bold red")
        for name, value in told["aux"].items():
            self._print(f"  {name}: {value}")
        for log in told["log"]:
            self._print(f"  log: {log}{'' if Path(log).is_file() else ' (not written: the error is above)'}")
            for line in _end_of(Path(log)).splitlines()[-ERROR_LINES:]:
                self._print(f"    {line}")

    def _show_results(self) -> None:
        finished = self._total > 0 and self._done >= self._total
        if finished:
            self._print(f"{_steps(self._done)} in {format_seconds(time.time() - self._began)}")
        for folder in self.results:
            summary, page = folder / "summary.csv", folder / "index.html"
            if summary.is_file() and (self._nothing or (finished and self._ran & _WITH_SCORES)):
                self._show_scores(summary)
                self._print(f"Scores: {summary}")
                if page.is_file():
                    self._print(f"Page:   {page}")

    def _show_scores(self, summary: Path) -> None:
        """The tables, and what this run changed in them."""
        from vitcapr.formats.scores import read_summary
        from vitcapr.formats.terminal import to_rich
        from vitcapr.report.score_tables import new_scores, score_tables

        after = read_summary(summary)
        for table in score_tables(after):
            self._print("")
            self._print(table.title)
            self._rich.print(to_rich(table))
        if summary in self._before:
            with suppress(UserError):  # What was there before this run may be damaged, or of an older format.
                for line in new_scores(read_summary(io.BytesIO(self._before[summary])), after):
                    self._print(line)

    @property
    def _rich(self) -> "Console":
        if self._console is None:
            from rich.console import Console

            self._console = Console(file=self._plain.stream, highlight=False, no_color=self._settings.nocolor or None)
        return self._console

    def _print(self, text: str, style: str | None = None) -> None:
        self._rich.print(text, style=style, markup=False, emoji=False, soft_wrap=True)

    def _draw(self) -> None:
        """Show the bar, on a terminal."""
        if not self._rich.is_terminal or not self._total:
            return
        running = ", ".join(step.name for step in self._steps.values() if step.log is not None)
        if self._bar is None:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                MofNCompleteColumn(),
                BarColumn(20),
                TimeRemainingColumn(),
                TextColumn("left · {task.description}"),
            )
            self._bar = Progress(*columns, console=self._rich, transient=True, refresh_per_second=2)
            self._bar.add_task(running, total=self._total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=self._done, total=self._total, description=running)


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


def _counted(log: Path) -> list[str]:
    """What a stage counted last, such as ``500 images``."""
    found = _COUNTED.findall(_end_of(log))
    return [f"{int(found[-1][0]):,} {found[-1][1]}"] if found else []


def _end_of(log: Path) -> str:
    """The end of a log; empty where it cannot be read."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _LOG_END))
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
