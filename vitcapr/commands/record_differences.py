"""Differences between two results, and between the jobs that made them."""

from collections.abc import Iterator
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.pipeline.fingerprint import changes, differences
from vitcapr.pipeline.records import Records, Run


def compare(first: Path, second: Path) -> list[str]:
    """Compare two experiments or two results."""
    from vitcapr.formats.scores import read_summary
    from vitcapr.report.score_tables import new_scores

    old, new = Records.around(first), Records.around(second)
    whole = [records.experiment.resolve() == path.resolve() for records, path in ((old, first), (new, second))]
    if all(whole):
        lines, summaries = list(compare_experiments(old, new)), [path / "summary.csv" for path in (first, second)]
        before, after = map(read_summary, summaries) if all(map(Path.is_file, summaries)) else (None, None)
        return lines if before is None or after is None else [*lines, *new_scores(before, after)]
    runs = old.writers(first), new.writers(second)
    if any(whole) or any(len(each) != 1 for each in runs):
        remedy = "name two folders of experiments, or two results"
        raise UserError("these cannot be compared", where=f"{first}, {second}", remedy=remedy)
    lines = list(compare_results(old, runs[0][0], new, runs[1][0], set()))
    if first.is_file() and second.is_file():
        same = sha256_file(first) == sha256_file(second)
        lines.append("the files are the same, byte for byte" if same else "the files differ")
    return lines or ["made from the same"]


def compare_jobs(before: Run, now: Run) -> list[str]:
    """Return the differences between what two jobs of one stage are made from, and between their machines."""
    if before.stage != now.stage:
        return [f"stage {before.stage} -> {now.stage}"]
    old, new = before.model_dump(), now.model_dump()
    machines = ({name: run["made"][name] for name in ("host", "python", "threads")} for run in (old, new))
    moved = differences(next(machines), next(machines))
    return [*changes(old, new), *(f"{key} {first} -> {second}" for key, first, second in moved)]


def compare_results(old: Records, before: Run, new: Records, now: Run, seen: set[str]) -> Iterator[str]:
    """Yield the differences between two jobs and, recursively, between the jobs that wrote their inputs."""
    yield from compare_jobs(before, now)
    inputs, others = (_by_role(run) for run in (before, now))
    for role in sorted(inputs.keys() | others.keys()) if before.stage == now.stage else ():
        if role not in inputs or role not in others:
            yield f"{role}: only the {'first' if role in inputs else 'second'} read it"
        elif inputs[role][1] != others[role][1]:
            writers = old.writer(before, inputs[role][0]), new.writer(now, others[role][0])
            if writers[0] is None or writers[1] is None:
                yield f"{role}: another content"
            elif (name := writers[0].name) in seen:
                yield f"{role}: another content ({name}, as above)"
            else:
                seen.add(name)
                yield f"{role}: another content ({name})"
                yield from (f"  {line}" for line in compare_results(old, writers[0], new, writers[1], seen))


def compare_experiments(old: Records, new: Records) -> Iterator[str]:
    """Compare the jobs of the same name. Jobs that differ only in their inputs are counted and not listed."""
    before, now = ({run.name: run for run in records.runs} for records in (old, new))
    same, following = 0, 0
    for name in sorted(before.keys() & now.keys()):
        if lines := list(compare_jobs(before[name], now[name])):
            yield name
            yield from (f"  {line}" for line in lines)
        else:
            equal = before[name].wrote == now[name].wrote
            same, following = same + equal, following + (not equal)
    for names, which in ((before.keys() - now.keys(), "first"), (now.keys() - before.keys(), "second")):
        if names:
            yield f"only in the {which}: {', '.join(sorted(names))}"
    yield f"{same} jobs have equal outputs; {following} have equal code and settings but other outputs"


def _by_role(run: Run) -> dict[str, tuple[str, str]]:
    """Option and file name -> path and digest. Several files of the same name are listed by their paths."""
    roles: dict[str, tuple[str, str]] = {}
    for path, facts in run.inputs.items():
        role = f"{facts['option']} {Path(path).name}"
        if role in roles:
            role = f"{facts['option']} {'/'.join(Path(path).parts[2:])}"
        roles[role] = (path, facts["sha256"])
    return roles
