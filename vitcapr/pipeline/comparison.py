"""The differences between two jobs, two experiments or two tables of scores."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vitcapr.pipeline.lineage import Lineage
from vitcapr.pipeline.records import Run

Scores = Mapping[tuple[str, ...], float]
SOURCE = Path("vitcapr")
_SHOWN = 3


def compare_jobs(first: Run, second: Run) -> Iterator[str]:
    """The differences in the settings, values and code of two jobs of one stage, and in all installed libraries."""
    if first.stage != second.stage:
        yield f"stage {first.stage} -> {second.stage}"
        return
    yield from code_changes(first.code, second.code)
    for before, now in ((first.settings, second.settings), (first.values, second.values)):
        for key, old, new in differences(before, now):
            if key != "code":
                yield f"{key} {old} -> {new}"
    code = {**first.code, **second.code}
    made = [dict[str, Any](run.made) for run in (first, second)]
    before, now = ({**each["libraries"], **{key: each[key] for key in ("python", "threads", "host")}} for each in made)
    for name, old, new in differences(before, now):
        if name not in code:
            yield f"{name} {json.loads(old)} -> {json.loads(new)}"


def compare_artefacts(
    first: tuple[Lineage, Run], second: tuple[Lineage, Run], depth: int = 0, seen: set[str] | None = None
) -> Iterator[str]:
    """The differences between two jobs and, recursively, between the jobs that wrote their inputs."""
    seen = set() if seen is None else seen
    (lineage, run), (other_lineage, other) = first, second
    indent = "  " * depth
    yield from (f"{indent}{line}" for line in compare_jobs(run, other))
    if run.stage != other.stage:
        return
    mine, theirs = (_by_role(one) for one in (run, other))
    for role in sorted(mine.keys() | theirs.keys()):
        old, new = mine.get(role), theirs.get(role)
        if old is None or new is None:
            yield f"{indent}{' '.join(role)}: only the {'second' if old is None else 'first'} read it"
        elif old[1] != new[1]:
            makers = lineage.maker(run, old[0]), other_lineage.maker(other, new[0])
            heading = f"{indent}{' '.join(role)}: another content"
            if makers[0] is None or makers[1] is None:
                yield heading
            elif makers[0].name in seen:
                yield f"{heading} ({makers[0].name}, as above)"
            else:
                seen.add(makers[0].name)
                yield f"{heading} ({makers[0].name})"
                yield from compare_artefacts((lineage, makers[0]), (other_lineage, makers[1]), depth + 1, seen)


def compare_experiments(first: Lineage, second: Lineage) -> Iterator[str]:
    """Compare the jobs of the same name. Jobs that differ only in their inputs are counted and not listed."""
    mine, theirs = ({run.name: run for run in lineage.runs} for lineage in (first, second))
    same, following = 0, 0
    for name in sorted(mine.keys() & theirs.keys()):
        lines = list(compare_jobs(mine[name], theirs[name]))
        if lines:
            yield name
            yield from (f"  {line}" for line in lines)
        elif _contents(mine[name]) == _contents(theirs[name]):
            same += 1
        else:
            following += 1
    for names, which in ((mine.keys() - theirs.keys(), "first"), (theirs.keys() - mine.keys(), "second")):
        if names:
            yield f"only in the {which}: {', '.join(sorted(names))}"
    yield f"{same} jobs have equal outputs; {following} have equal code and settings but other outputs"


def compare_scores(first: Scores, second: Scores) -> Iterator[str]:
    """The differing scores; equal scores are counted."""
    shared = [key for key in first if key in second]
    changed = [key for key in shared if first[key] != second[key]]
    names = {key: " ".join(part for part in key if part) for key in changed}
    width = max(map(len, names.values()), default=0)
    for key in changed:
        old, new = first[key], second[key]
        yield f"{names[key]:{width}}  {old:.4f} -> {new:.4f}  {new - old:+.4f}"
    only = len(first) - len(shared), len(second) - len(shared)
    yield f"{len(shared) - len(changed)} scores are the same, {len(changed)} differ; " + (
        f"{only[0]} only in the first, {only[1]} only in the second"
    )


def _by_role(run: Run) -> dict[tuple[str, str], tuple[str, str]]:
    """(option, file name) -> (path, digest). Several files of the same name are listed by their paths."""
    roles: dict[tuple[str, str], tuple[str, str]] = {}
    for path, facts in run.inputs.items():
        role = (facts["option"], Path(path).name)
        if role in roles:
            role = (facts["option"], "/".join(Path(path).parts[2:]))
        roles[role] = (path, facts["sha256"])
    return roles


def _contents(run: Run) -> dict[str, str]:
    return {run.place(path): facts["sha256"] for path, facts in run.outputs.items()}


def code_changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Modules and libraries that differ between two :func:`vitcapr.pipeline.code.stage_code`."""
    changed = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    modules = [name for name in changed if is_module(name)]
    if modules:
        edited = [_file_of(name) for name in modules if name in before and name in now] or list(map(_file_of, modules))
        more = f" and {len(edited) - _SHOWN} more" if len(edited) > _SHOWN else ""
        yield f"its code changed ({', '.join(edited[:_SHOWN])}{more})"
    for name in changed:
        if name not in modules:
            yield f"{name} {before.get(name, 'not used')} -> {now.get(name, 'not used')}"


def is_module(name: str) -> bool:
    """Whether a part of the code is a module or a file of a plugin, not a library."""
    return name.startswith("vitcapr.") or name.endswith(".py")


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
    if module.endswith(".py"):
        return module
    path = SOURCE.joinpath(*module.removesuffix(".yaml").split(".")[1:])
    ending = ".yaml" if module.endswith(".yaml") else ".py"
    return str(path / "__init__.py" if path.is_dir() else path.with_suffix(ending))
