"""Say what differs between two results, and in what they were made from."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.scores import read_summary
from vitcapr.pipeline.changes import code_changes, differences
from vitcapr.pipeline.records import Records, Run
from vitcapr.progress import print_lines

KINDS = "two folders of experiments, two results, or two summaries"
Scores = Mapping[tuple[str, ...], float]


def main(
    first: Annotated[Path, typer.Argument(help="results/<experiment>, a file or folder in it, or a summary.csv.")],
    second: Annotated[Path, typer.Argument(help="What to compare it with; of the same kind.")],
) -> None:
    """Print the differences in settings, code, libraries, inputs and scores. Computes nothing."""
    for path in (first, second):
        if not path.exists():
            raise UserError("no such file or folder", where=path, remedy=f"name {KINDS}")
    if first.suffix == second.suffix == ".csv":
        lines = list(compare_scores(read_scores(first), read_scores(second)))
    else:
        lines = compare(first, second)
    print_lines(f"{first} -> {second}", *(f"  {line}" for line in lines))


def compare(first: Path, second: Path) -> list[str]:
    """Two experiments, or two results."""
    old, new = Records.around(first), Records.around(second)
    whole = [records.experiment.resolve() == path.resolve() for records, path in ((old, first), (new, second))]
    if all(whole):
        lines, summaries = list(compare_experiments(old, new)), [path / "summary.csv" for path in (first, second)]
        if all(map(Path.is_file, summaries)):
            lines += ["scores", *(f"  {line}" for line in compare_scores(*map(read_scores, summaries)))]
        return lines
    runs = old.writers(first), new.writers(second)
    if any(whole) or any(len(each) != 1 for each in runs):
        raise UserError("these cannot be compared", where=f"{first}, {second}", remedy=f"name {KINDS}")
    lines = list(compare_results(old, runs[0][0], new, runs[1][0], set()))
    if first.is_file() and second.is_file():
        same = sha256_file(first) == sha256_file(second)
        lines.append("the files are the same, byte for byte" if same else "the files differ")
    return lines or ["made from the same"]


def compare_jobs(before: Run, now: Run) -> Iterator[str]:
    """The differences between the code, settings and values of two jobs of one stage, and between their machines."""
    if before.stage != now.stage:
        yield f"stage {before.stage} -> {now.stage}"
        return
    yield from code_changes(before.code, now.code)
    machines = (
        {name: dict[str, Any](run.made)[name] for name in ("host", "python", "threads")} for run in (before, now)
    )
    for pair in ((before.settings, now.settings), (before.values, now.values), machines):
        yield from (f"{key} {old} -> {new}" for key, old, new in differences(*pair))


def compare_results(old: Records, before: Run, new: Records, now: Run, seen: set[str]) -> Iterator[str]:
    """The differences between two jobs and, recursively, between the jobs that wrote their inputs."""
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


def compare_scores(first: Scores, second: Scores) -> Iterator[str]:
    """The differing scores; equal scores are counted."""
    shared = [key for key in first if key in second]
    changed = {key: " ".join(filter(None, key)) for key in shared if first[key] != second[key]}
    width = max(map(len, changed.values()), default=0)
    for key, name in changed.items():
        yield f"{name:{width}}  {first[key]:.4f} -> {second[key]:.4f}  {second[key] - first[key]:+.4f}"
    only = len(first) - len(shared), len(second) - len(shared)
    counts = f"{len(shared) - len(changed)} scores are the same, {len(changed)} differ"
    yield f"{counts}; {only[0]} only in the first, {only[1]} only in the second"


def read_scores(path: Path) -> Scores:
    """The scores of a summary by split, model, decoding and metric. Scores without a value are left out."""
    table = read_summary(path).dropna(subset=["value"])
    keys = table[["split", "model", "decoding", "metric"]].itertuples(index=False, name=None)
    return dict(zip(keys, table["value"].tolist(), strict=True))


def _by_role(run: Run) -> dict[str, tuple[str, str]]:
    """Option and file name -> path and digest. Several files of the same name are listed by their paths."""
    roles: dict[str, tuple[str, str]] = {}
    for path, facts in run.inputs.items():
        role = f"{facts['option']} {Path(path).name}"
        if role in roles:
            role = f"{facts['option']} {'/'.join(Path(path).parts[2:])}"
        roles[role] = (path, facts["sha256"])
    return roles


app = typer_app(main)
