"""What a run of Snakemake shows: a line for each finished step, the errors, and at the end the scores.

Snakemake finds this module by its name, and ``logger: vitcapr`` in a profile chooses it. The Snakefile logs a line with
the folder ``results`` of its experiment. A dry run and the options ``--verbose``, ``--printshellcmds`` and
``--debug-dag`` show Snakemake's own output. No text of Snakemake is read, only the fields of its records.
"""

import io
import logging
import os
import sys
import textwrap
import time
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import snakemake
from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_vitcapr.stage_logs import counted, end_of_stage, last_lines, last_message
from vitcapr.errors import UserError
from vitcapr.progress import PROGRESS, format_seconds

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

_ABOVE = "the error is above"
_KILLED = f"interrupted, or killed (often because the memory ran out), or {_ABOVE}"
_LONGEST = 400
"""Characters of a line of an executor, such as a whole call of ``sbatch``."""
_NOTHING = "Nothing to be done (all requested files are present and up to date)."
_SNAKEMAKE = Path(snakemake.__file__).parent
"""Messages from here say nothing once a run has started; those of its executors do."""
_WITH_SCORES = {"all", "summary", "first_page"}
"""The rules after which the scores are new."""


class LogHandler(LogHandlerBase):
    """Shows the records of a run. Snakemake calls it in a thread of its own."""

    writes_to_stream = True
    has_formatter = True
    writes_to_file = has_filter = needs_rulegraph = False

    def __post_init__(self) -> None:
        settings: Any = self.common_settings
        formatter = DefaultFormatter(settings.quiet, settings.show_failed_logs)
        stream = sys.stdout if settings.stdout else sys.stderr
        self._plain: Any = ColorizingTextHandler(settings.nocolor, stream, formatter)
        self._detailed = settings.verbose or settings.dryrun or settings.printshellcmds or settings.debug_dag
        self._results: list[Path] = []
        self._contents: list[str] = []
        self._early: list[str] = []
        self._jobs: dict[int, logging.LogRecord] = {}
        self._failed: set[int] = set()
        self._ran: set[str] = set()
        self._before: dict[Path, bytes] = {}
        self._total = self._done = 0
        self._began = time.time()
        self._exception = ""
        self._started = self._over = self._closed = False
        self._live: Live | None = None
        if not self._detailed:
            os.environ.setdefault(*PROGRESS)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._detailed and not hasattr(record, "results"):
                self._plain.emit(record)
            self._follow(record)
        except Exception:
            self.handleError(record)

    def close(self) -> None:
        """End with the scores, if the run has made them and all of its results."""
        if not self._closed:
            if self._live is not None:
                self._live.stop()
            nothing = self._started and not (self._total or self._exception or self.common_settings.quiet)
            for line in [*self._early, *([_NOTHING] if nothing else [])]:
                self._print(line)
            self._closed = True
            if self._total and not self.common_settings.dryrun:
                self._show_results()
        super().close()

    def _follow(self, record: logging.LogRecord) -> None:
        values, message = record.__dict__, str(record.msg or "")
        self._over = self._over or record.funcName == "log_workflow_runtime"
        match values.get("event"):
            case LogEvent.WORKFLOW_STARTED:
                self._started = True
                self._early.clear()
            case LogEvent.RUN_INFO:
                self._total = values["stats"].get("total", 0) - values["stats"].get("all", 0)
                files = [folder / "summary.csv" for folder in self._results]
                self._before = {file: file.read_bytes() for file in files if file.is_file()}
                for line in (*self._contents, _steps(self._total)):
                    self._print(line)
            case LogEvent.JOB_INFO:
                self._jobs[values["jobid"]] = record
                if values["jobid"] in self._failed:
                    self._print(f"{_name(record)} starts again")
                self._draw()
            case LogEvent.JOB_FINISHED:
                self._finish(values["job_id"], record.created)
            case LogEvent.JOB_ERROR:
                self._print_error(values)
            case LogEvent.ERROR:
                self._exception = message
                # The error of a rule comes before that of its job. The error of a run that is over repeats the others.
                if values["exception"] != "RuleException" and not self._over:
                    self._print(message, "bold red")
            case event if event is LogEvent.GROUP_ERROR or record.levelno >= logging.WARNING:
                if not (self._failed and record.levelno >= logging.ERROR and record.funcName == "schedule"):
                    style = "bold red" if record.levelno >= logging.ERROR else "yellow"
                    self._print(self._plain.format(record), style)
            case None if "results" in values:
                self._results.append(values["results"])
                self._contents.append(message)
            case None if not Path(record.pathname).is_relative_to(_SNAKEMAKE):
                self._print(message)
            case None if not self._started:
                self._early.append(message)

    def _finish(self, jobid: int, now: float) -> None:
        job = self._jobs.pop(jobid, None)
        self._failed.discard(jobid)
        self._done = min(self._done + 1, self._total)
        if job is not None:
            self._ran.add(job.__dict__["rule_name"])
            if job.__dict__["log"]:
                words = " · ".join([_name(job), *counted(_log(job)), format_seconds(now - job.created)])
                self._print(f"[{self._done:>{len(str(self._total))}}/{self._total}] {words}")
        self._draw()

    def _print_error(self, values: dict[str, Any]) -> None:
        job = self._jobs.pop(values["jobid"], None)
        self._failed.add(values["jobid"])
        logs = {log: last_lines(log) for log in map(Path, values["log"])}
        # What the stage said last is the reason, if it ended by itself. Else the executor knows more.
        ended = "; ".join(reason for log in logs if (reason := end_of_stage(log)))
        if values["rule_msg"]:
            reason = "\n".join(textwrap.shorten(line, _LONGEST) for line in values["rule_msg"].splitlines())
        elif values["shellcmd"] is None:
            reason = self._exception
        else:
            reason = _KILLED if any(logs.values()) else _ABOVE
        self._print(f"error in {values['rule_name'] if job is None else _name(job)}: {ended or reason}", "bold red")
        for key, value in values["aux"].items():
            self._print(f"  {key}: {value}")
        for log, lines in logs.items():
            self._print(f"  log: {log}{'' if lines else ' (not written)'}")
            for line in [] if ended else lines:
                self._print(f"    {line}")

    def _show_results(self) -> None:
        finished, took = self._done >= self._total, format_seconds(time.time() - self._began)
        failed = f", {len(self._failed)} failed" if self._failed else ""
        of_all = "" if finished else f"{self._done} of "
        self._print(f"{of_all}{_steps(self._total)} in {took}{'' if finished else failed}")
        for folder in self._results:
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

        return Console(file=self._plain.stream, highlight=False, no_color=self.common_settings.nocolor or None)

    def _print(self, text: str, style: str | None = None) -> None:
        """Print a line, unless Snakemake's own output is shown. The end of the run is shown in any case."""
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
        jobs = [job for job in list(self._jobs.values()) if job.__dict__["log"]]
        steps = [" · ".join([_name(job), *last_message(_log(job), since=job.created)]) for job in jobs]
        return Group(bar, *(Text(f"  {step}", no_wrap=True, overflow="ellipsis") for step in steps))


def _log(job: logging.LogRecord) -> Path:
    return Path(job.__dict__["log"][0])


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


def _name(job: logging.LogRecord) -> str:
    """``decode attention beam``, of the record of a job that begins."""
    values = job.__dict__
    wildcards = (str(value) for name, value in values["wildcards"].items() if name != "experiment")
    return " ".join([values["rule_name"], *wildcards])
