"""What a run of Snakemake shows: a line for each finished step, the errors, and at the end the scores.

Snakemake finds this module by its name, and ``logger: vitcapr`` in a profile chooses it. The Snakefile logs a line with
the folder ``results`` of its experiment. A dry run and the options ``--verbose``, ``--printshellcmds`` and
``--debug-dag`` show Snakemake's own output. No text of Snakemake is read, only the fields of its records.

Ctrl-C ends a run in one line, and by the signal itself, so that a shell reports exit code 130.
"""

import atexit
import io
import logging
import os
import re
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

import snakemake
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from snakemake.logging import ColorizingTextHandler, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from vitcapr.errors import EXIT_INTERRUPTED, UserError, printable
from vitcapr.progress import PROGRESS, RESULT, format_seconds

_KILLED = "interrupted, or killed (often because the memory ran out), or the error is above"
_LOCKED = (
    "error: another run works in this folder; wait for its end, or, if it was killed, run snakemake --unlock and repeat"
)
_NOTHING = "Nothing to be done (all requested files are present and up to date)."
_LINES, _TAIL = 20, 16_384
"""Lines of the log of a failed step, and bytes that hold them: the bar asks twice a second, so only the end is read."""
_COUNTED = re.compile(r": (\d+)/\1 ([a-z]+) in \d")
"""The last line of a :class:`~vitcapr.progress.Tracker`."""
_RESULT = re.compile(rf" {RESULT}(.*)$", re.MULTILINE)
_TIME = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", re.MULTILINE)
"""Begins each message of a log; a message may have several lines."""


class LogHandler(LogHandlerBase):
    """Shows the records of a run. Snakemake calls it in a thread of its own."""

    writes_to_stream = has_formatter = True
    writes_to_file = has_filter = needs_rulegraph = False

    def __post_init__(self) -> None:
        settings: Any = self.common_settings
        formatter = DefaultFormatter(settings.quiet, settings.show_failed_logs)
        stream = sys.stdout if settings.stdout else sys.stderr
        self._plain: Any = ColorizingTextHandler(settings.nocolor, stream, formatter)
        self._console = Console(file=stream, highlight=False, no_color=settings.nocolor or None)
        self._detailed = settings.verbose or settings.dryrun or settings.printshellcmds or settings.debug_dag
        self._before: dict[Path, bytes | None] = {}
        self._contents: list[str] = []
        self._early: list[str] = []
        self._jobs: dict[int, logging.LogRecord] = {}
        self._ran: set[str] = set()
        self._failed: set[int] = set()
        self._finished: dict[int, float] = {}
        self._time_left: Callable[[Mapping[int, float], Mapping[int, float]], str] = lambda *_: ""
        self._interrupted = False
        self._total = self._done = 0
        self._began = time.time()
        self._started = self._mistaken = self._closed = False
        self._live = Live(get_renderable=self.running, console=self._console, transient=True, refresh_per_second=2)
        if not self._detailed:
            os.environ.setdefault(*PROGRESS)
        # Only the main thread can set a handler. An ignored Ctrl-C, as in the background, stays ignored.
        given = signal.getsignal(signal.SIGINT)
        if given is signal.default_int_handler and current_thread() is main_thread() and not settings.dryrun:
            signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, *_: object) -> None:
        """Let Snakemake end. The running stages get a later Ctrl-C too; Snakemake itself only waits for them."""
        self._interrupted = True
        signal.signal(signal.SIGINT, lambda *_: None)
        atexit.register(_end_by_interrupt)
        raise SystemExit(EXIT_INTERRUPTED)

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
            self._live.stop()
            shown = self._total or self._mistaken or self._interrupted or self.common_settings.quiet
            nothing = self._started and not shown
            self._print(*self._early, *([_NOTHING] if nothing else []))
            self._closed = True
            if self._interrupted:
                took = format_seconds(time.time() - self._began)
                after = f" after {self._done} of {_steps(self._total)} in {took}" if self._total else ""
                self._print(f"stopped{after}; the same command goes on")
            elif self._total and not self.common_settings.dryrun:
                self._show_results()
            if signal.getsignal(signal.SIGINT) == self._interrupt and current_thread() is main_thread():
                signal.signal(signal.SIGINT, signal.default_int_handler)
        super().close()

    def _follow(self, record: logging.LogRecord) -> None:
        values, message = record.__dict__, str(record.msg or "")
        match values.get("event"):
            case LogEvent.WORKFLOW_STARTED:
                self._started = True
                self._early.clear()
            case LogEvent.RUN_INFO:
                self._total = values["stats"].get("total", 0) - values["stats"].get("all", 0)
                self._before = {file: file.read_bytes() if file.is_file() else None for file in self._before}
                self._print(*self._contents, _steps(self._total))
                if self._console.is_terminal and not self._detailed:
                    self._live.start()
            case LogEvent.JOB_INFO:
                self._jobs[values["jobid"]] = record
                self._failed.discard(values["jobid"])
            case LogEvent.JOB_FINISHED:
                self._finish(values["job_id"], record.created)
            case LogEvent.JOB_ERROR if self._interrupted:
                self._jobs.pop(values["jobid"], None)
            case LogEvent.JOB_ERROR:
                self._print_error(values)
            case LogEvent.ERROR if values["exception"] == "RuleException":
                pass  # The error of its job follows.
            case LogEvent.ERROR if values["exception"] == "LockException":
                self._print(_LOCKED, style="bold red")
            case event if event in (LogEvent.ERROR, LogEvent.GROUP_ERROR) or record.levelno >= logging.WARNING:
                # The errors of a run whose step has failed, or that was stopped, repeat that.
                if record.levelno < logging.ERROR or not (self._failed or self._interrupted):
                    style = "yellow" if record.levelno < logging.ERROR else "bold red"
                    self._print(self._plain.format(record), style=style)
            case None if "time_left" in values:
                self._time_left = values["time_left"]
                self._print(*([message] if message else []))
            case None if "results" in values:
                self._before[values["results"] / "summary.csv"] = None
                self._contents.append(message)
            # Once a run has started, messages of Snakemake itself say nothing; those of its executors do.
            case None if not Path(record.pathname).is_relative_to(Path(snakemake.__file__).parent):
                self._print(message)
            case None if not self._started:
                self._early.append(message)

    def _finish(self, jobid: int, now: float) -> None:
        job, self._done = self._jobs.pop(jobid, None), min(self._done + 1, self._total)
        self._finished[jobid] = 0.0 if job is None else now - job.created
        self._ran |= {job.__dict__["rule_name"]} if job is not None else set()
        if job is not None and job.__dict__["log"]:
            lines = "\n".join(_last_lines(job.__dict__["log"][0], job.created))
            counted = [f"{int(number):,} {unit}" for number, unit in _COUNTED.findall(lines)[-1:]]
            words = [_name(job), *(_RESULT.findall(lines)[-1:] or counted), format_seconds(now - job.created)]
            self._print(f"[{self._done:>{len(str(self._total))}}/{self._total}] {' · '.join(words)}")

    def _print_error(self, values: dict[str, Any]) -> None:
        """Why a step failed: what the stage said last, if it ended by itself, else what the executor knows."""
        job = self._jobs.pop(values["jobid"], None)
        self._failed.add(values["jobid"])
        since = 0.0 if job is None else job.created
        lines = [line for log in values["log"] for line in _last_lines(log, since)]
        last = _TIME.split("\n".join(lines))[-1]
        reason = "\n".join(textwrap.shorten(line, 400) for line in (values["rule_msg"] or _KILLED).splitlines())
        if ended := last.startswith("ended: "):
            reason = last.removeprefix("ended: ")
        self._print(f"error in {values['rule_name'] if job is None else _name(job)}: {reason}", style="bold red")
        self._print(*(f"  {key}: {value}" for key, value in values["aux"].items()))
        self._print(*(f"  log: {log}{'' if lines else ' (not written)'}" for log in values["log"]))
        self._print(*(f"    {line}" for line in ([] if ended else lines)))

    def _show_results(self) -> None:
        """Print the tables, also those over seeds, and the changes of the scores in this run."""
        finished, took = self._done >= self._total, format_seconds(time.time() - self._began)
        failed = f", {len(self._failed)} failed" if self._failed else ""
        self._print(f"{'' if finished else f'{self._done} of '}{_steps(self._total)} in {took}{failed}")
        for summary, before in self._before.items():
            if not (finished and summary.is_file() and self._ran & {"all", "summary", "first_page"}):
                continue
            import pandas as pd

            from vitcapr.formats.scores import read_summary
            from vitcapr.formats.terminal import print_tables
            from vitcapr.report.score_tables import new_scores, score_tables, spread_tables

            after, page = read_summary(summary), summary.with_name("index.html")
            print_tables(self._console, score_tables(after))
            if "spread" in self._ran:
                files = [summary.with_name("tables") / f"{name}.csv" for name in ("spread", "spread_pairs")]
                spread = [pd.read_csv(file, keep_default_na=False) for file in files]
                print_tables(self._console, spread_tables(*spread))
            if before is not None:
                with suppress(UserError):  # What was there before this run may be damaged, or of an older format.
                    self._print(*new_scores(read_summary(io.BytesIO(before)), after, most=3))
            self._print(*([] if after.empty else [f"Scores: {summary}"]))
            self._print(*([f"Page:   {page}"] if page.is_file() else []))

    def _print(self, *lines: str, style: str = "") -> None:
        """Print lines, unless Snakemake's own output is shown. The end of the run is shown in any case."""
        self._mistaken = self._mistaken or style == "bold red"
        for line in lines if self._closed or not self._detailed else ():
            self._console.print(Text(line, style), soft_wrap=True)  # A style of print colours what runs, too.

    def running(self) -> Group:
        """Return a bar with the time left, and a line for each running step: its name and the last line of its log."""
        bar, now, running = Table.grid(padding=(0, 1)), time.time(), dict(self._jobs)
        left = self._time_left(dict(self._finished), {number: now - job.created for number, job in running.items()})
        done = f"{self._done}/{self._total} steps in {format_seconds(now - self._began)}{left and f', {left}'}"
        bar.add_row(ProgressBar(self._total, self._done, width=20, complete_style="cyan"), done)
        jobs = [job for job in running.values() if job.__dict__["log"]]
        ends = [_last_lines(job.__dict__["log"][0], job.created)[-1:] for job in jobs]
        steps = [
            " · ".join([_name(job), *(_TIME.sub("", line) for line in end)])
            for job, end in zip(jobs, ends, strict=True)
        ]
        return Group(bar, *(Text(f"  {step}", no_wrap=True, overflow="ellipsis") for step in steps))


def _end_by_interrupt() -> None:
    """End this process as Python does after a KeyboardInterrupt that nobody catches, without its traceback."""
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _last_lines(log: str, since: float) -> list[str]:
    """Return the end of a log that was written to ``since`` its attempt began: an earlier attempt may have left lines.

    Empty where the log cannot be read.
    """
    try:
        with Path(log).open("rb") as stream:
            state = os.fstat(stream.fileno())
            stream.seek(max(0, state.st_size - _TAIL))
            text = printable(stream.read().decode(errors="replace"))
    except OSError:
        return []
    return text.splitlines()[-_LINES:] if state.st_mtime >= since else []


def _steps(count: int) -> str:
    return f"{count} step{'' if count == 1 else 's'}"


def _name(job: logging.LogRecord) -> str:
    """``decode attention beam``, of the record of a job that begins."""
    values = job.__dict__
    wildcards = (str(value) for name, value in values["wildcards"].items() if name != "experiment")
    return " ".join([values["rule_name"], *wildcards])
