"""Lists of names, for wildcards."""

import re
from collections.abc import Iterable, Sequence


def unique(names: Iterable[str]) -> list[str]:
    """The distinct names, in the order of their first appearance."""
    return list(dict.fromkeys(names))


def one_of(names: Sequence[str]) -> str:
    """A wildcard constraint that matches any of ``names``; it matches nothing if there are no names."""
    return "|".join(map(re.escape, names)) if names else "(?!)"
