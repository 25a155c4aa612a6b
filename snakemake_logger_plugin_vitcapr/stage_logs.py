"""What the log of a stage says at its end, as :mod:`vitcapr.progress` writes it."""

import re
from contextlib import suppress
from pathlib import Path

from vitcapr.errors import printable

_LINES = 20
_TAIL = 16_384
"""Bytes of a log that hold these lines. The bar asks twice a second, so only the end is read."""
_COUNTED = re.compile(r": (\d+)/\1 ([a-z]+) in \d")
"""The last line of a :class:`~vitcapr.progress.Tracker`."""
_COPIED = re.compile(r" (\d+ \w+ copied) from .*, (\d+) to compute$", re.MULTILINE)
"""Of an extraction that copies rows of other stores."""
_TIME = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", re.MULTILINE)
"""Begins each message of a log; a message may have several lines."""
_ENDED = "ended: "


def last_lines(log: Path) -> list[str]:
    """The end of a log; empty where it cannot be read."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _TAIL))
            return printable(stream.read().decode(errors="replace")).splitlines()[-_LINES:]
    except OSError:
        return []


def counted(log: Path) -> list[str]:
    """``500 images`` or ``200 images copied, 20 computed``; empty where the stage has counted nothing."""
    lines = "\n".join(last_lines(log))
    if copied := _COPIED.findall(lines):
        return ["{}, {} computed".format(*copied[-1])]
    return [f"{int(number):,} {unit}" for number, unit in _COUNTED.findall(lines)[-1:]]


def end_of_stage(log: Path) -> str:
    """Why a stage ended by itself before its work was done; empty if its log does not say so."""
    last = _TIME.split("\n".join(last_lines(log)))[-1]
    return last.removeprefix(_ENDED) if last.startswith(_ENDED) else ""


def last_message(log: Path, since: float) -> list[str]:
    """What the log of a stage that began at the time ``since`` said last, without the time; empty before that."""
    with suppress(OSError):
        if log.stat().st_mtime >= since:  # An earlier run may have left lines.
            return [_TIME.sub("", line) for line in last_lines(log)[-1:]]
    return []
