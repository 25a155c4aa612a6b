"""Say what made a result, from what, where, and what it cost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError
from vitcapr.pipeline.changes import code_changes, leaves
from vitcapr.pipeline.code import code_hash, job_code
from vitcapr.pipeline.records import Records, Run
from vitcapr.pipeline.stage import find_stage
from vitcapr.progress import format_seconds, print_lines


def main(
    target: Annotated[Path, typer.Argument(help="A file or folder under results/<experiment>, or that folder itself.")],
    settings: Annotated[bool, typer.Option("--settings", help="Show every setting, one per line.")] = False,
) -> None:
    """Print how a result was made: stage, inputs, settings, machine and cost. Computes nothing."""
    records = Records.around(target)
    runs = records.writers(target)
    if len(runs) == 1:
        print_lines(*explain(records, runs[0], settings))
        print(f"  {runs[0].command}")  # Not wrapped: it is to be copied.
    else:
        print_lines(*overview(records, runs, target))


def explain(records: Records, run: Run, settings: bool = False) -> list[str]:
    """The description of one job and of all jobs that it depends on."""
    as_written = "as it was made; whether the configuration still asks for it: vitcapr status"
    made, cache = run.made, run.result_cache
    took, cpu = format_seconds(made["seconds"]), format_seconds(made["cpu_seconds"])
    energy = "" if made["joules"] is None else f", {_energy(made['joules'])} of the GPUs"
    again = cache["restored"] if cache else None
    restored = [f"restored from the result cache on {again}: {cache['key']}"] if cache and again else []
    plain = {**run.settings, **run.values}
    values = [f"{key} {value}" for key, value in leaves(plain)] if plain else []
    rows = {
        "state": [as_written if records.is_as_written(run) else "CHANGED since it was made"],
        "made by": [
            f"{run.name}, on {made['host']} by {made['user']}, {made['started']}",
            f"{took}, {cpu} of CPU in {made['threads']} threads, {made['peak_memory_mb']} MB at most{energy}",
            *restored,
        ],
        "code": [f"{code_hash(run.code)[:16]}, of {sum('/' in name for name in run.code)} files, {_now(run)}"],
        "settings": values if settings or not values else [f"{len(values)} values (--settings lists them)"],
        "with": [
            ", ".join([f"python {made['python']}", *(f"{n} {v}" for n, v in run.code.items() if n.isidentifier())])
        ],
    }
    lines = [", ".join(map(run.place, run.outputs))]
    lines += [
        f"  {'' if number else label:10}{text}" for label, each in rows.items() for number, text in enumerate(each)
    ]
    return [*lines, "", "from", *(f"  {line}" for line in inputs(records, run, set())), "", "again"]


def inputs(records: Records, run: Run, seen: set[str]) -> Iterator[str]:
    """The inputs of a job by the jobs that wrote them and, recursively, the inputs of these jobs, each listed once."""
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


def overview(records: Records, runs: list[Run], target: Path) -> list[str]:
    """Several jobs, one per line, and their total cost."""
    width = max(len(run.name) for run in runs)
    lines = [
        f"  {run.name:{width}}  {format_seconds(run.made['seconds']):>8}  {run.made['host']}  {run.made['started']}"
        + ("" if records.is_as_written(run) else "  CHANGED since it was made")
        for run in runs
    ]
    joules = sum(run.made["joules"] or 0 for run in runs)
    total = format_seconds(sum(run.made["seconds"] for run in runs))
    return [f"{target}: {len(runs)} jobs, {total} of work{f', {_energy(joules)}' if joules else ''}", *lines]


def _now(run: Run) -> str:
    """What has changed in the code since."""
    try:
        stage = find_stage(run.stage)
        changes = list(code_changes(run.code, job_code(stage.module, stage.result_settings(run.settings))))
    except UserError:
        changes = ["the stage is no more"]
    return f"other now: {'; '.join(changes)}" if changes else "the same now"


def _energy(joules: float) -> str:
    return f"{joules / 3.6e6:.3g} kWh" if joules >= 3.6e5 else f"{joules:.0f} J"


app = typer_app(main)
