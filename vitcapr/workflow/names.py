"""Lists of names, for wildcards."""

import re
from collections.abc import Iterable, Sequence


def unique(names: Iterable[str]) -> list[str]:
    """Each name once, in the order of its first appearance."""
    return list(dict.fromkeys(names))


def one_of(names: Sequence[str]) -> str:
    """A wildcard's constraint: any of ``names``, or nothing at all when there is none."""
    return "|".join(map(re.escape, names)) if names else "(?!)"
