"""What a run of Snakemake shows: a line for each finished step, the errors, and at the end the scores.

A dry run and the options ``--verbose``, ``--printshellcmds`` and ``--debug-dag`` show Snakemake's own output. The
Snakefile calls :func:`show_steps`: a profile that names a logger plugin fails wherever the plugin is not installed.
"""

import io
import logging
import os
import re
import time
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snakemake.logging import logger
from snakemake.settings.types import ExecMode
from snakemake_interface_logger_plugins.common import LogEvent

from vitcapr.errors import UserError, printable
from vitcapr.progress import PROGRESS, format_seconds

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

ERROR_LINES = 20
"""Of a failed step's log."""
_TAIL = 16_384
"""Bytes of a log that hold these lines."""
_COUNTED = re.compile(r": (\d+)/\1 ([a-z]+) in \d")
"""The last line of a :class:`~vitcapr.progress.Tracker`."""
_COPIED = re.compile(r" (\d+ \w+ copied) from .*, (\d+) to compute$", re.MULTILINE)
"""Of an extraction that copies rows of other stores."""
_TIME = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", re.MULTILINE)
"""Begins each message of a log; a message may have several lines."""
_ENDED = "ended: "
_KILLED = re.compile(r"(?:died with <Signals\.\w+: (\d+)>|non-zero exit status (\d+))\.?\s*$")
_SHELLS = 128
"""A shell reports a program that a signal ended with this exit status plus the signal."""
_CHATTER = (
    *("Assuming unrestricted", "Building DAG", "Using shell", "Select jobs", "Conda environments: ignored"),
    *("Singularity containers: ignored", "host: ", "Complete log(s)", "Group jobs: inactive", "Elapsed time: "),
)
_SHELL = "CalledProcessError in file"
"""The error of a command that failed, with the whole command; the error of its step follows."""
_REPEATED = ("Exiting because a job execution failed", "WorkflowError:\nAt least one job did not complete")
"""What the errors of the steps and the last line say."""
_WITH_SCORES = {"all", "summary", "first_page"}
"""The rules after which the scores are new."""


def show_steps(workflow: Any, results: Path, contents: str) -> None:
    """Show the steps of this run in place of Snakemake's own output, and at the end the scores in ``results``.

    A handler that the user chose with ``--logger`` stays, and so does the output of the Snakemake that runs one job on
    another machine.

    Args:
        workflow: Snakemake's.
        results: the folder ``results/<experiment>``.
        contents: a line that says what the experiment is.
    """
    if workflow.exec_mode != ExecMode.DEFAULT:
        return
    for handler in list(logger.handlers):
        if isinstance(handler, StepHandler):
            handler.results.append(results)
            handler.contents.append(contents)
        elif handler.name == "DefaultStreamHandler":
            logger.removeHandler(handler)
            logger.addHandler(StepHandler(handler, workflow.output_settings, results, contents))


class StepHandler(logging.Handler):
    """Shows the records of a run where Snakemake's own handler would.

    Args:
        plain: Snakemake's own handler.
        settings: Snakemake's ``OutputSettings``.
        results: the folder whose scores are shown at the end; more can be added to the attribute of this name.
    """

    def __init__(self, plain: Any, settings: Any, results: Path, contents: str) -> None:
        super().__init__()
        self.filters = plain.filters
        self.results, self.contents = [results], [contents]
        self._plain, self._settings = plain, settings
        self._detailed = settings.verbose or settings.dryrun or settings.printshellcmds or settings.debug_dag
        self._jobs: dict[int, logging.LogRecord] = {}
        self._done = self._total = self._failures = self._without_work = self._signal = 0
        self._ran: set[str] = set()
        self._before: dict[Path, bytes] = {}
        self._began = time.time()
        self._closed = False
        self._live: Live | None = None
        if not self._detailed:
            os.environ.setdefault(*PROGRESS)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._detailed:
                self._plain.emit(record)
            self._follow(record)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """End with the scores, if the run has made them and all of its results."""
        if not self._closed:
            self._closed = True
            if self._live is not None:
                self._live.stop()
            if self._total and not self._settings.dryrun:
                self._show_results()
        super().close()

    def _follow(self, record: logging.LogRecord) -> None:
        event, values, message = getattr(record, "event", None), record.__dict__, str(record.msg or "")
        if event is LogEvent.RUN_INFO:
            self._without_work = values["stats"].get("all", 0)
            self._total = values["stats"].get("total", 0) - self._without_work
            summaries = [folder / "summary.csv" for folder in self.results]
            self._before = {file: file.read_bytes() for file in summaries if file.is_file()}
            for line in (*self.contents, _steps(self._total)):
                self._print(line)
        elif event is LogEvent.JOB_INFO:
            self._jobs[values["jobid"]] = record
            self._draw()
        elif event is LogEvent.JOB_FINISHED:
            self._finish(values["job_id"], record.created)
        elif event is LogEvent.JOB_ERROR:
            self._failures += 1
            self._print_error(values)
        elif event is LogEvent.ERROR and _SHELL in message:
            self._signal = _signal(message)
        elif event in (LogEvent.GROUP_ERROR, LogEvent.ERROR) or record.levelno >= logging.WARNING:
            if not message.startswith(_REPEATED):
                style = "bold red" if record.levelno >= logging.ERROR else "yellow"
                self._print(self._plain.format(record), style)
        elif event is None and message and not message.startswith(_CHATTER):
            self._print(message)

    def _finish(self, jobid: int, now: float) -> None:
        job = self._jobs.pop(jobid, None)
        self._done = min(self._done + 1, self._total)
        if job is not None:
            self._ran.add(job.__dict__["rule_name"])
            if log := _log(job):
                lines = "\n".join(_last_lines(log))
                counted = [f"{int(number):,} {unit}" for number, unit in _COUNTED.findall(lines)[-1:]]
                counted = [f"{copied}, {left} computed" for copied, left in _COPIED.findall(lines)[-1:]] or counted
                words = " · ".join([_name(job), *counted, format_seconds(now - job.created)])
                self._print(f"[{self._done:>{len(str(self._total))}}/{self._total}] {words}")
        self._draw()

    def _print_error(self, values: dict[str, Any]) -> None:
        job = self._jobs.pop(values["jobid"], None)
        name, reason = values["rule_name"] if job is None else _name(job), ""
        logs = {log: _last_lines(log) for log in map(Path, values["log"])}
        if self._signal:
            reason = f"killed by signal {self._signal}" + ("; often the memory ran out" if self._signal == 9 else "")
            self._signal = 0
        else:  # What the stage said last is the reason, if it ended by itself.
            last = [_TIME.split("\n".join(lines))[-1] for lines in logs.values()]
            reason = "; ".join(words.removeprefix(_ENDED) for words in last if words.startswith(_ENDED))
            logs = {log: [] if reason else lines for log, lines in logs.items()}
        self._print(f"error in {name}{reason and ': '}{reason}", "bold red")
        for key, value in values["aux"].items():
            self._print(f"  {key}: {value}")
        for log, lines in logs.items():
            self._print(f"  log: {log}{'' if log.is_file() else ' (not written: the error is above)'}")
            for line in lines:
                self._print(f"    {line}")

    def _show_results(self) -> None:
        finished, took = self._done >= self._total, format_seconds(time.time() - self._began)
        failed = f", {self._failures} failed" if self._failures else ""
        self._print(
            f"{_steps(self._total)} in {took}"
            if finished
            else f"{self._done} of {_steps(self._total)} in {took}{failed}"
        )
        for folder in self.results:
            summary, page = folder / "summary.csv", folder / "index.html"
            if summary.is_file() and finished and self._ran & _WITH_SCORES:
                self._show_scores(summary)
                self._print(f"Scores: {summary}")
                if page.is_file():
                    self._print(f"Page:   {page}")

    def _show_scores(self, summary: Path) -> None:
        """The tables, also those over seeds, and what this run changed in the scores."""
        import pandas as pd

        from vitcapr.formats.scores import read_summary
        from vitcapr.formats.terminal import to_rich
        from vitcapr.report.score_tables import new_scores, score_tables, spread_tables

        after = read_summary(summary)
        tables = list(score_tables(after))
        files = [summary.with_name("tables") / f"{name}.csv" for name in ("spread", "spread_pairs")]
        if "spread" in self._ran and all(map(Path.is_file, files)):
            tables += spread_tables(*(pd.read_csv(file, keep_default_na=False) for file in files))
        for table in tables:
            self._print(f"\n{table.title}")
            self._console.print(to_rich(table))
        if summary in self._before:
            with suppress(UserError):  # What was there before this run may be damaged, or of an older format.
                for line in new_scores(read_summary(io.BytesIO(self._before[summary])), after):
                    self._print(line)

    @cached_property
    def _console(self) -> "Console":
        from rich.console import Console

        return Console(file=self._plain.stream, highlight=False, no_color=self._settings.nocolor or None)

    def _print(self, text: str, style: str | None = None) -> None:
        """Print a line, unless Snakemake's own handler shows the records. The end of the run is shown in any case."""
        if self._closed or not self._detailed:
            from rich.text import Text

            self._console.print(Text(text, style or ""), soft_wrap=True)  # A style of print colours what runs, too.

    def _draw(self) -> None:
        """Show the bar and what runs, on a terminal."""
        if self._live is None and self._total and not self._detailed and self._console.is_terminal:
            from rich.live import Live

            self._live = Live(get_renderable=self.running, console=self._console, transient=True, refresh_per_second=2)
            self._live.start()

    def running(self) -> "Group":
        """A bar of the steps, and a line for each step that runs: its name and what its log said last."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bar, took = Table.grid(padding=(0, 1)), format_seconds(time.time() - self._began)
        bar.add_row(ProgressBar(self._total, self._done, width=20), f"{self._done}/{self._total} steps in {took}")
        steps = [" · ".join([_name(job), *_last_message(job)]) for job in list(self._jobs.values()) if _log(job)]
        return Group(bar, *(Text(f"  {step}", no_wrap=True, overflow="ellipsis") for step in steps))


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


def _name(job: logging.LogRecord) -> str:
    """``decode attention beam``, of the record of a job that begins."""
    values = job.__dict__
    wildcards = (str(value) for name, value in values["wildcards"].items() if name != "experiment")
    return " ".join([values["rule_name"], *wildcards])


def _log(job: logging.LogRecord) -> Path | None:
    return Path(job.__dict__["log"][0]) if job.__dict__["log"] else None


def _last_lines(log: Path) -> list[str]:
    """The end of a log; empty where it cannot be read. The bar asks twice a second, so only the end is read."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _TAIL))
            return printable(stream.read().decode(errors="replace")).splitlines()[-ERROR_LINES:]
    except OSError:
        return []


def _last_message(job: logging.LogRecord) -> list[str]:
    """What the log of a running step said last, without the time; nothing before it says something."""
    log = _log(job)
    with suppress(OSError):
        if log is not None and log.stat().st_mtime >= job.created:  # An earlier run may have left lines.
            return [_TIME.sub("", line) for line in _last_lines(log)[-1:]]
    return []


def _signal(message: str) -> int:
    """The signal that ended the command of an error's message; 0 if none did."""
    match = _KILLED.search(message)
    if match is None:
        return 0
    return int(match[1]) if match[1] else max(int(match[2]) - _SHELLS, 0)
