"""Say what made a result, from what, where, and what it cost; or how two results differ."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError
from vitcapr.experiment.lineage import Records, changes, code_changes, differences, leaves
from vitcapr.files import sha256_file
from vitcapr.pipeline.code import code_hash, job_code
from vitcapr.pipeline.run_records import Run
from vitcapr.pipeline.stage import find_stage
from vitcapr.progress import format_seconds, print_lines

_AS_MADE = "as it was made; whether the configuration still asks for it: vitcapr status"
_CHANGED = "CHANGED since it was made"


def main(
    target: Annotated[Path, typer.Argument(help="A file or folder under results/<experiment>, or that folder itself.")],
    other: Annotated[Path | None, typer.Argument(help="A second one of the same kind: print what differs.")] = None,
    settings: Annotated[bool, typer.Option("--settings", help="Show every setting, one per line.")] = False,
) -> None:
    """Print how a result was made: stage, inputs, settings, machine and cost.

    Of two results, print the differences in settings, code, libraries, inputs and scores. Computes nothing.
    """
    if other is not None:
        print_lines(f"{target} -> {other}", *(f"  {line}" for line in compare(target, other)))
        return
    records = Records.around(target)
    runs = records.writers(target)
    if len(runs) == 1:
        print_lines(*explain(records, runs[0], settings), "", "again")
        print(f"  {runs[0].command}")  # Not wrapped: it is to be copied.
        return
    print_lines(f"{target}: {len(runs)} jobs, {format_seconds(sum(run.made['seconds'] for run in runs))} of work")
    width = max(len(run.name) for run in runs)
    for run in runs:
        took, state = format_seconds(run.made["seconds"]), "" if records.is_as_written(run) else _CHANGED
        print_lines(f"  {run.name:{width}}  {took:>8}  {run.made['host']}  {run.made['started']}  {state}".rstrip())


def explain(records: Records, run: Run, settings: bool = False) -> Iterator[str]:
    """Yield the description of one job and of all jobs that it depends on."""
    made, cache = run.made, run.result_cache
    took, cpu = format_seconds(made["seconds"]), format_seconds(made["cpu_seconds"])
    values = [f"{key} {value}" for key, value in leaves({**run.settings, **run.values}) if key]
    versions = {"python": made["python"], **{name: one for name, one in run.code.items() if name.isidentifier()}}
    files = sum("/" in name for name in run.code)
    yield ", ".join(map(run.place, run.outputs))
    yield f"  state     {_AS_MADE if records.is_as_written(run) else _CHANGED}"
    yield f"  made by   {run.name}, on {made['host']} by {made['user']}, {made['started']}"
    yield f"            {took}, {cpu} of CPU in {made['threads']} threads, {made['peak_memory_mb']} MB at most"
    if cache and cache["restored"]:
        yield f"            restored from the result cache on {cache['restored']}: {cache['key']}"
    for act in run.accepted:
        yield f"  accepted  by {act['user']} on {act['host']}, {act['time']}, although {'; '.join(act['differed'])}"
    yield f"  code      {code_hash(run.code)[:16]}, of {files} files, {_now(run)}"
    if not settings and values:
        values = [f"{len(values)} values (--settings lists them)"]
    yield from (f"  {'' if number else 'settings':10}{value}" for number, value in enumerate(values))
    yield f"  with      {', '.join(f'{name} {one}' for name, one in versions.items())}"
    yield "\nfrom"
    yield from (f"  {line}" for line in inputs(records, run, set()))


def inputs(records: Records, run: Run, seen: set[str]) -> Iterator[str]:
    """Yield the inputs of a job by the jobs that wrote them, recursively, each listed once."""
    groups: dict[str, tuple[Run | None, list[str]]] = {}
    for path in run.inputs:
        writer = records.writer(run, path)
        groups.setdefault(writer.name if writer else "", (writer, []))[1].append(path)
    for writer, paths in groups.values():
        files = ", ".join(map(run.place, paths))
        if writer is None:
            yield files
        elif writer.name in seen:
            yield f"{files}  ({writer.name}, as above)"
        else:
            seen.add(writer.name)
            changed = [path for path in paths if run.inputs[path]["sha256"] != writer.wrote[run.place(path)]]
            stale = f"; it read another {run.place(changed[0])} than there is now" if changed else ""
            yield f"{files}  ({writer.name}, {format_seconds(writer.made['seconds'])}{stale})"
            yield from (f"  {line}" for line in inputs(records, writer, seen))


def _now(run: Run) -> str:
    """Describe the changes of the code since the run."""
    try:
        stage = find_stage(run.stage)
        edits = list(code_changes(run.code, job_code(stage.module, stage.result_settings(run.settings))))
    except UserError:
        edits = ["the stage is no more"]
    return f"other now: {'; '.join(edits)}" if edits else "the same now"


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


app = typer_app(main)
