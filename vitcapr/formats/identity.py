"""Which of our images or captions a name in a file of another program stands for.

The identity is the whole path below the folder of the data set. Other programs leave out the suffix or leading folders,
or write the whole path from the root of their machine; a name that fits several ids is refused.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from vitcapr.errors import UserError

_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
"""That of a file; the end of ``1.5`` is none."""


def match_names(ids: Sequence[str], names: Iterable[str], where: object = None) -> dict[str, str]:
    """Id -> the name that stands for it; ids without a name are left out.

    Names are compared whole. If none is an id, they are compared without suffix, and if none fits then, without the
    leading folders that one of the two paths lacks.

    Examples:
        >>> match_names(["cats/0.jpg", "dogs/0.jpg"], ["/photos/cats/0.jpg"])
        {'cats/0.jpg': '/photos/cats/0.jpg'}

    Raises:
        UserError: a name stands for several ids, or several names for one id.
    """
    names, known = list(dict.fromkeys(names)), set(ids)
    if exact := {name: name for name in names if name in known}:
        return exact
    own, other = _by_path(ids), _by_path(names)
    pairs = [(path, path) for path in other if path in own]
    if not pairs:
        own_tails, other_tails = _by_tail(own), _by_tail(other)
        pairs = [(path, tail) for tail in other for path in own_tails[tail]]
        pairs += [(tail, path) for tail in own for path in other_tails[tail]]
    matches: dict[str, str] = {}
    taken: dict[str, str] = {}
    for ours, theirs in pairs:
        for identifier in own[ours]:
            for name in other[theirs]:
                if (before := taken.setdefault(name, identifier)) != identifier:
                    raise _ambiguous(name, before, identifier, where)
                if (before := matches.setdefault(identifier, name)) != name:
                    raise _ambiguous(identifier, before, name, where)
    return matches


def _ambiguous(name: str, first: str, second: str, where: object) -> UserError:
    remedy = "give each image its whole path below the folder of the images"
    return UserError(f"'{name}' stands for {first} and {second}", where=where, remedy=remedy)


def _by_path(names: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    """The names of each path without suffix."""
    paths = defaultdict(list)
    for name in names:
        paths[tuple(part for part in _SUFFIX.sub("", name).split("/") if part not in ("", "."))].append(name)
    return paths


def _by_tail(paths: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """The paths that end with each shorter path."""
    tails = defaultdict(list)
    for path in paths:
        for first in range(1, len(path)):
            tails[path[first:]].append(path)
    return tails
