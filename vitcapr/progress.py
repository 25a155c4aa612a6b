"""Progress, rate and remaining time: a live bar on a terminal, periodic lines in a log file."""

import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, TextIO

from vitcapr.errors import UserError, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


PROGRESS = ("VITCAPR_PROGRESS", "log")
"""The variable, and its value with which the messages of a stage that has a log go there only."""

RESULT = "result: "


def format_seconds(seconds: float) -> str:
    """``75`` -> ``1:15``; ``3700`` -> ``1:01:40``."""
    whole = int(max(seconds, 0))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def format_bytes(count: int) -> str:
    """``1.5 MB``."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def print_lines(*texts: object, stream: TextIO | None = None, width: int | None = None) -> None:
    """Print texts for people, with control characters as escapes: names of files, images and authors may stand in them.

    Lines are wrapped at spaces, under the start of their last column: what follows two spaces.

    Args:
        width: columns of a pipe or a file, by default without a limit; a terminal has its own.
    """
    stream = stream or sys.stdout
    if stream.isatty():
        width = shutil.get_terminal_size().columns
    for line in printable("\n".join(map(str, texts))).split("\n") if texts else ():
        if width is not None:
            column = re.match(r".*\S {2,}(?=\S)| *", line)
            indent = column.end() if column and 0 < column.end() <= width // 2 else 2
            line = textwrap.fill(
                line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
            )
        print(line, file=stream)


def is_started_by_torchrun() -> bool:
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def is_first_process() -> bool:
    """Return whether this process reports and writes: the first that torchrun started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


class Tracker:
    """Counts one piece of work; made by :meth:`Reporter.track`."""

    def __init__(self, reporter: "Reporter", description: str, total: int, unit: str, done: int) -> None:
        self._reporter, self._description, self._total, self._unit = reporter, description, total, unit
        self._done, self._begun_at = done, done
        self._start = time.monotonic()
        self._next_line = self._start + reporter.interval
        self._bar = _bar(reporter.console) if reporter.live else None
        if self._bar is not None:
            self._task = self._bar.add_task(description, total=total, completed=done, rate="", note="")
            self._bar.start()

    @property
    def rate(self) -> float:
        """Units per second since the start, without resumed work."""
        return (self._done - self._begun_at) / max(time.monotonic() - self._start, 1e-9)

    def advance(self, amount: int = 1, note: str = "") -> None:
        self._done += amount
        self._reporter.doing = f"{self._description}: {self._done:,} of {self._total:,} {self._unit}"
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, rate=f"{self.rate:.1f} {self._unit}/s", note=note)
        if time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + self._reporter.interval
            self._write_line(note)

    def _write_line(self, note: str) -> None:
        left = format_seconds((self._total - self._done) / self.rate) if self.rate > 0 else "?"
        self._reporter.line(
            f"{self._description}: {self._done}/{self._total} {self._unit}, {self.rate:.1f}/s, {left} left"
            + (f", {note}" if note else ""),
            to_terminal=self._bar is None,
        )

    def close(self) -> None:
        self._reporter.doing = ""
        if self._bar is not None:
            self._bar.stop()
        took = format_seconds(time.monotonic() - self._start)
        self._reporter.line(
            f"{self._description}: {self._done}/{self._total} {self._unit} in {took}, {self.rate:.1f}/s",
            to_terminal=self._bar is None,
        )


def _bar(console: "Console") -> "Progress":
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(complete_style="cyan", finished_style="green"),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
    )


class Reporter:
    """The messages of a stage: to standard error and, if given, appended to a log file.

    rich is imported only for a terminal, because its import takes a tenth of a second.

    Args:
        log: a file that receives every line, with the time; None for none.
        interval: seconds between two progress lines in the log.
        stream: the terminal; a live bar is drawn only if it is one.
    """

    def __init__(self, log: Path | None = None, interval: float = 10.0, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._shows = log is None or os.environ.get(PROGRESS[0]) != PROGRESS[1]
        self.live = self._shows and self._stream.isatty()
        self.interval = interval
        self.doing = ""  # The count of what is tracked now, for a page.
        self._log: TextIO | None = None
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            self._log = log.open("a", encoding="utf-8", errors="backslashreplace")

    @cached_property
    def console(self) -> "Console":
        """Console of the terminal, which prints a line above a live bar."""
        from rich.console import Console

        return Console(file=self._stream)

    def line(self, message: str, to_terminal: bool = True) -> None:
        message = printable(message)
        if self._log is not None:
            self._log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {message}\n")
            self._log.flush()
        if not (to_terminal and self._shows):
            return
        if self.live:
            self.console.print(message, markup=False, highlight=False, emoji=False, soft_wrap=True)
        else:
            print(message, file=self._stream, flush=True)

    def result(self, message: str) -> None:
        """Write the line that Snakemake's line of the finished step repeats."""
        self.line(f"{RESULT}{message}")

    @contextmanager
    def track(self, description: str, total: int, unit: str, done: int = 0) -> Iterator[Tracker]:
        """Track ``total`` units of work. An earlier, interrupted run did ``done`` of them."""
        tracker = Tracker(self, printable(description), total, unit, done)
        try:
            yield tracker
        finally:
            tracker.close()

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Write the reason of a failure to the log. If a UserError is shown nowhere else, the program ends here."""
        if error is not None:
            self.line(f"ended: {str(error) or type(error).__name__}", to_terminal=False)
        self.close()
        if isinstance(error, UserError) and not self._shows:
            raise SystemExit(error.exit_code) from error
