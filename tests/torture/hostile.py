"""Small generators of damage to bytes, to JSON values and to files. Each knows whether it changed anything."""

import copy
import json
import random
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

T = TypeVar("T")

SPECIAL = (
    *(None, True, -1, 0, 1.5, 10**30, -(2**63), float("nan"), float("inf"), "", " ", "\x00", "\ud800", "../../x"),
    *("/etc/passwd", "a" * 10_000, [], {}, [[]], {"": None}, "$(touch PWNED)", "-1", "NaN", "\r\n", "‮x", "con"),
)
VALUES = st.recursive(
    st.sampled_from(SPECIAL) | st.integers() | st.floats() | st.text(max_size=20) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
"""Any value of JSON, the special ones above all."""


def grown(strategy: st.SearchStrategy[T], number: int, first: int) -> list[T]:
    """``number`` examples that hypothesis draws; the same for the same ``first``."""
    found: list[T] = []

    @seed(first)
    @settings(
        max_examples=number,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    collect()
    return found


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Other bytes than ``content``."""
    if not content:
        return b"x"
    at, deep = draw.randrange(len(content)), draw.choice((1000, 100_000))
    zeros = bytes(min(len(content) - at, draw.choice((8, 512, 4096))))
    flipped = content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]
    found = (
        *(flipped, flipped, flipped),
        content[:at],
        content[:at] + zeros + content[at + len(zeros) :],
        content[:at] + content[max(0, at - 64) :],
        content + draw.randbytes(draw.choice((1, 100))),
        content.replace(b"\r\n", b"\n").replace(b"\n", b"\r"),
        content.decode("utf-8", "replace").encode("utf-16"),
        b"",
        *(b"[" * deep + b"]" * deep, b'{"a":' * deep + b"1" + b"}" * deep, b"9" * deep),
    )
    return draw.choice([other for other in found if other != content])


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where every value lies within ``value``."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def with_value(value: Any, new: Any, draw: random.Random) -> Any:
    """A copy of ``value`` with ``new`` in one place, or without what was there."""
    where = draw.choice(places(value)[:2000])
    if not where:
        return new
    changed = copy.deepcopy(value)
    inner = changed
    for key in where[:-1]:
        inner = inner[key]
    if draw.random() < 0.2:
        del inner[where[-1]]
    else:
        inner[where[-1]] = new
    return changed


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=True), encoding="utf-8")


def damage_file(path: Path, new: Any, draw: random.Random) -> str | None:
    """Replace a file, put ``new`` into it or change its bytes; returns what was done, None if it is as it was."""
    way = draw.random()
    if way < 0.1:
        return replace_by_no_file(path, draw)
    content = path.read_bytes()
    path.unlink()  # It may be a link to another file.
    if path.suffix != ".json" or way > 0.6:
        path.write_bytes(damaged(content, draw))
        return "other bytes"
    value = json.loads(content)
    changed = with_value(value, new, draw)
    write_json(path, changed)
    return None if json.dumps(changed) == json.dumps(value) else f"{str(new)[:40]!r} in it"


def replace_by_no_file(path: Path, draw: random.Random) -> str:
    """Put something in the place of the file that is none; returns what."""
    path.unlink()
    what = draw.choice(("nothing", "a folder", "a link to itself", "a link to nowhere"))
    match what:
        case "a folder":
            path.mkdir()
        case "a link to itself":
            path.symlink_to(path.name)
        case "a link to nowhere":
            path.symlink_to("nowhere")
    return what
