"""Bounds on what a configuration file may hold, whoever wrote it."""

import math
from typing import Any

from vitcapr.errors import UserError

DEEPEST = 20
MOST_VALUES = 100_000
LARGEST = 2**53
"""Of a number: all whole numbers up to it are exact in every format that settings pass through."""
LONGEST = 10_000


def check_plain(values: Any, where: object) -> None:
    """Check that ``values``, as YAML gives them, are finite, printable and no deeper than a configuration is.

    Raises:
        UserError: they are not; one line names the key.
    """
    waiting: list[tuple[str, int, Any]] = [("", 0, values)]
    seen = 0
    while waiting:
        key, depth, value = waiting.pop()
        seen += 1
        if seen > MOST_VALUES:
            raise UserError(f"a configuration has at most {MOST_VALUES} values", where=where)
        if isinstance(value, dict | list):
            if depth == DEEPEST:
                raise UserError(f"configuration key '{key[:60]}...' is nested deeper than {DEEPEST}", where=where)
            items = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [(f"{key}.{name}".lstrip("."), depth + 1, item) for name, item in items]
        elif reason := _refusal(value):
            raise UserError(f"configuration key '{key}': {reason}", where=where, remedy="correct the configuration")


def _refusal(value: Any) -> str | None:
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"a number is at most {LARGEST}"
    if isinstance(value, float) and not math.isfinite(value):
        return "a number is finite"
    if isinstance(value, str) and len(value) > LONGEST:
        return f"a text has at most {LONGEST} characters"
    if isinstance(value, str) and not value.isprintable():
        return "a text has no control characters and no line breaks"
    return None
