"""Lists of names: of wildcards and of options."""

import re
from collections.abc import Iterable, Sequence


def unique(names: Iterable[str]) -> list[str]:
    """Each name once, in the order of its first appearance."""
    return list(dict.fromkeys(names))


def one_of(names: Sequence[str]) -> str:
    """A wildcard's constraint: any of ``names``, or nothing at all when there is none."""
    return "|".join(map(re.escape, names)) if names else "(?!)"


def options(flag: str, values: Iterable[str]) -> str:
    """``--flag value`` for each value, as a command line takes them."""
    return " ".join(f"--{flag} {value}" for value in values)
