"""What the jobs behind some files cost, from their run records."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from vitcapr.formats.tables import Table, row
from vitcapr.pipeline.records import RUNS, Records, Run
from vitcapr.progress import format_seconds
from vitcapr.report.first_page.content import Noted

_SHOWN = 8
"""Stages with a row of their own; the rest are added up."""


def cost(page: Path, files: Iterable[Path]) -> Noted[Table] | None:
    """The table of the jobs behind ``files``; None where no job of these is recorded beside ``page``."""
    folder = page.parent
    if not (folder / RUNS).is_dir():
        return None
    places = [path.relative_to(folder).as_posix() for path in files if path.is_relative_to(folder)]
    jobs = Records(folder).behind(places)
    return Noted(cost_table(jobs), cost_note(jobs)) if jobs else None


def cost_table(runs: Sequence[Run]) -> Table:
    """Time, CPU time and peak memory by stage, the longest first, and of all."""
    stages: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        stages[run.stage].append(run)
    ordered = sorted(stages.items(), key=lambda item: (-sum(run.made["seconds"] for run in item[1]), item[0]))
    rest = [run for _, each in ordered[_SHOWN:] for run in each]
    groups = [
        *ordered[:_SHOWN],
        *([(f"{len(ordered) - _SHOWN} other stages", rest)] if rest else []),
        ("all", list(runs)),
    ]
    lines = []
    for name, several in groups:
        made = [run.made for run in several]
        seconds, cpu_seconds = (format_seconds(sum(each[key] for each in made)) for key in ("seconds", "cpu_seconds"))
        memory = f"{max(each['peak_memory_mb'] for each in made) / 1000:.1f} GB"
        lines.append(row(name, str(len(several)), seconds, cpu_seconds, memory))
    return Table("", ("stage", "jobs", "time", "CPU time", "memory at most"), tuple(lines))


def cost_note(runs: Sequence[Run]) -> str:
    """What the numbers of :func:`cost_table` are."""
    hosts = sorted({run.made["platform"] for run in runs})
    days = sorted(run.made["started"][:10] for run in runs)
    parts = [
        "The jobs behind this page, without the figures. Times are added up; jobs that ran side by side took less time "
        "together.",
        f"Measured {days[0] if days[0] == days[-1] else f'{days[0]} to {days[-1]}'} on {'; '.join(hosts)}.",
    ]
    uses = [use for run in runs if (use := run.result_cache) is not None]
    restored = sum(use["restored"] is not None for use in uses)
    if restored:
        parts.append(f"{restored} of {len(runs)} jobs were restored from the result cache; their first cost counts.")
    return " ".join(parts)
