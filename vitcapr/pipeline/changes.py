"""What differs between nested settings, and in what two results are made from."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_SHOWN = 3
"""Files of code that one line names."""


def leaves(values: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every (dotted key, value as JSON) of nested settings."""
    if isinstance(values, dict) and values:
        for name, value in values.items():
            yield from leaves(value, f"{key}.{name}" if key else name)
    else:
        yield key, json.dumps(values, ensure_ascii=False)


def differences(before: Any, now: Any, key: str = "") -> Iterator[tuple[str, str, str]]:
    """The (dotted key, old, new) of every leaf that differs, old and new as JSON."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = (dict(zip(map(str, range(len(each))), each, strict=True)) for each in (before, now))
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            yield from differences(before.get(name), now.get(name), f"{key}.{name}" if key else name)
    elif before != now:
        yield key, json.dumps(before, ensure_ascii=False), json.dumps(now, ensure_ascii=False)


def code_changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """The files and libraries that differ between two :func:`vitcapr.pipeline.code.job_code`."""
    changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    files = [name for name in changed if not name.isidentifier()]
    if edited := [name for name in files if name in before and name in now] or files:
        more = f" and {len(edited) - _SHOWN} more" if len(edited) > _SHOWN else ""
        yield f"its code changed ({', '.join(edited[:_SHOWN])}{more})"
    for name in sorted(set(changed) - set(files)):
        yield f"{name} {before.get(name, 'not used')} -> {now.get(name, 'not used')}"


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """A line for each difference between what two results of one stage are made from: ``code``, ``settings``,
    ``values`` and the digests of the user's ``files``."""
    yield from code_changes(before["code"], now["code"])
    for part in ("settings", "values"):
        yield from (f"{key} {old} -> {new}" for key, old, new in differences(before[part], now[part]))
    yield from (f"the content of {key} changed" for key, _, _ in differences(before["files"], now["files"]))
