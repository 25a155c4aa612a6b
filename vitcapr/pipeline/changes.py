"""Describes the differences between the inputs, settings and code of two results."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SOURCE = Path("vitcapr")
_SHOWN = 3


def code_changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Modules and libraries that differ between two :func:`vitcapr.pipeline.code.stage_code`."""
    changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    modules = [name for name in changed if name.startswith("vitcapr.")]
    if modules:
        edited = [_file_of(name) for name in modules if name in before and name in now] or list(map(_file_of, modules))
        more = f" and {len(edited) - _SHOWN} more" if len(edited) > _SHOWN else ""
        yield f"its code changed ({', '.join(edited[:_SHOWN])}{more})"
    for name in changed:
        if name not in modules:
            yield f"{name} {before.get(name, 'not used')} -> {now.get(name, 'not used')}"


def differences(before: Any, now: Any, key: str = "") -> Iterator[tuple[str, str, str]]:
    """The (dotted key, old, new) of every leaf that differs, old and new as JSON."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in sorted(before.keys() | now.keys()):
            yield from differences(before.get(name), now.get(name), f"{key}.{name}" if key else name)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for place, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from differences(old, new, f"{key}.{place}")
    elif before != now:
        yield key, json.dumps(before, ensure_ascii=False), json.dumps(now, ensure_ascii=False)


def leaves(values: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every (dotted key, value as JSON) of nested settings."""
    if isinstance(values, dict) and values:
        for name, value in values.items():
            yield from leaves(value, f"{key}.{name}" if key else name)
    else:
        yield key, json.dumps(values, ensure_ascii=False)


def _file_of(module: str) -> str:
    path = SOURCE.joinpath(*module.split(".")[1:])
    return str(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
