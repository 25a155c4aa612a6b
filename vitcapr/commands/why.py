"""Say what made an artefact, from what, where, and what it cost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError
from vitcapr.files import canonical_json, sha256_bytes
from vitcapr.pipeline.code import job_code
from vitcapr.pipeline.comparison import code_changes, is_module, leaves
from vitcapr.pipeline.lineage import Lineage
from vitcapr.pipeline.records import CODE_DIGESTS, Run
from vitcapr.pipeline.stage import find_stage
from vitcapr.progress import format_seconds, print_lines

_WIDTH = 10
_ASKED = "; whether the configuration still asks for it: vitcapr status"


def main(
    target: Annotated[Path, typer.Argument(help="A file or folder under results/<experiment>, or that folder itself.")],
    settings: Annotated[bool, typer.Option("--settings", help="Show every setting, one per line.")] = False,
) -> None:
    """Print the provenance of an artefact: stage, inputs, settings, machine and cost. Computes nothing."""
    lineage = Lineage.of(target)
    runs = lineage.made(target)
    if len(runs) == 1:
        print_lines(*explain(lineage, runs[0], settings))
        print(f"  {runs[0].command}")  # Not wrapped: it is to be copied.
    else:
        print_lines(*overview(lineage, runs, target))


def explain(lineage: Lineage, run: Run, settings: bool = False) -> list[str]:
    """The description of one job and of all jobs that it depends on."""
    names = ", ".join(run.place(path) for path in run.outputs)
    state = f"as it was made{_ASKED}" if lineage.is_as_made(run) else "CHANGED since it was made"
    started = run.made["started"].replace("T", " ").replace("+00:00", " UTC")
    made = f"{run.name}, on {run.made['host']} by {run.made['user']}, {started}"
    lines = [names, _row("state", state), _row("made by", made)]
    lines += [_row("", line) for line in _cost(run)]
    lines += [_row("code", line) for line in _code(lineage, run)]
    options = {key: value for key, value in run.values.items() if key != "code"}  # The code has its own line.
    values = {**run.settings, **options}
    pairs = [f"{key} {value}" for key, value in leaves(values)] if values else []
    if settings:
        lines += [_row("settings" if not number else "", item) for number, item in enumerate(pairs)]
    elif pairs:
        lines.append(_row("settings", f"{len(pairs)} values (--settings lists them)"))
    libraries = {"python": run.made["python"], **run.made["libraries"]}
    lines.append(_row("with", ", ".join(f"{name} {version}" for name, version in libraries.items())))
    lines += ["", "from", *tree(lineage, run), "", "again"]
    return lines


def tree(lineage: Lineage, run: Run, depth: int = 1, seen: set[str] | None = None) -> Iterator[str]:
    """The inputs of a job and, recursively, of the jobs that wrote them. Each job is listed once."""
    seen = set() if seen is None else seen
    for maker, paths in lineage.sources(run):
        files = ", ".join(run.place(path) for path in paths)
        indent = "  " * depth
        if maker is None:
            yield f"{indent}{files}"
        elif maker.name in seen:
            yield f"{indent}{files}  ({maker.name}, as above)"
        else:
            seen.add(maker.name)
            wrote = {maker.place(path): facts["sha256"] for path, facts in maker.outputs.items()}
            changed = [path for path in paths if run.inputs[path]["sha256"] != wrote[run.place(path)]]
            stale = f"; it read another {run.place(changed[0])} than there is now" if changed else ""
            yield f"{indent}{files}  ({maker.name}, {format_seconds(maker.made['seconds'])}{stale})"
            yield from tree(lineage, maker, depth + 1, seen)


def overview(lineage: Lineage, runs: list[Run], target: Path) -> list[str]:
    """Several jobs, one per line, and their total cost."""
    width = max(len(run.name) for run in runs)
    lines = [
        f"  {run.name:{width}}  {format_seconds(run.made['seconds']):>8}  {run.made['host']}  {run.made['started']}"
        + ("" if lineage.is_as_made(run) else "  CHANGED since it was made")
        for run in runs
    ]
    joules = [sum(run.made["energy"]["joules"].values()) for run in runs]
    energy = f", {_energy(sum(joules))}" if any(joules) else ""
    total = format_seconds(sum(run.made["seconds"] for run in runs))
    return [f"{target}: {len(runs)} jobs, {total} of work{energy}", *lines]


def _cost(run: Run) -> Iterator[str]:
    made, cache = run.made, run.result_cache
    took, cpu = format_seconds(made["seconds"]), format_seconds(made["cpu_seconds"])
    yield f"{took}, {cpu} of CPU in {made['threads']} threads, {made['peak_memory_mb']} MB at most"
    energy = made["energy"]
    used = [f"{_energy(value)} by {name}" for name, value in energy["joules"].items()]
    missing = [f"{name} not measured: {reason}" for name, reason in energy["absent"].items()]
    yield "energy: " + "; ".join([*used, *missing])
    if cache and cache["restored"]:
        restored = cache["restored"].replace("T", " ").replace("+00:00", " UTC")
        yield f"restored from the result cache on {restored}: {cache['key']}"


def _code(lineage: Lineage, run: Run) -> Iterator[str]:
    code: dict[str, str] = run.code
    modules = sum(map(is_module, code))
    digest = sha256_bytes(canonical_json(code).encode())[:16]
    try:
        stage, remembered = find_stage(run.stage), lineage.experiment.parent / CODE_DIGESTS
        now = job_code(stage.module, stage.result_settings(run.settings), remembered)
        changes = list(code_changes(code, now))
    except UserError:
        changes = ["the stage is no more"]
    yield f"{digest}, of {modules} modules, {'the same now' if not changes else 'other now: ' + '; '.join(changes)}"


def _row(label: str, text: str) -> str:
    return f"  {label:{_WIDTH}}{text}"


def _energy(joules: float) -> str:
    return f"{joules / 3.6e6:.3g} kWh" if joules >= 3.6e5 else f"{joules:.0f} J"


app = typer_app(main)
