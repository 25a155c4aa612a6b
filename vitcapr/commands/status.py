"""Say what a run would compute again, and why."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import Configfiles, typer_app
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import Experiment, load_experiment
from vitcapr.pipeline.dry_run import PlannedJob, planned_jobs
from vitcapr.progress import print_lines
from vitcapr.store.check import lost_stores

_RUNNING = "Snakemake runs here. If it does not, it was killed: snakemake --unlock"


def main(
    configfile: Configfiles = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also list the jobs that run only because others do.")
    ] = False,
) -> None:
    """Print which stages a run would compute again, with the reasons. Computes nothing."""
    files = configfile or []
    experiment = load_experiment(*files)
    jobs, lost = planned_jobs(files), list(lost_stores(Path(experiment.root)))
    lines = list(describe(experiment.name, jobs, verbose)) if jobs or not lost else []
    if left := ", ".join(systems_left(experiment)):
        lines.append(f"  no longer in the tables: {left}")
    run = " ".join(["snakemake --cores 2", *(f"--configfile {file}" for file in files)])
    for sealed, forced in lost:
        again = f"pull it again, or run\n  {run} {forced}" if forced else "import it again"
        lines.append(f"the store of {sealed} is gone; {again}")
    print_lines(*lines)


def systems_left(experiment: Experiment) -> list[str]:
    """What the last ``summary.csv`` has scores of and the experiment no longer scores: ``attention greedy``."""
    from vitcapr.formats.scores import read_summary

    try:
        summary = read_summary(Path(experiment.root, "summary.csv"))
    except UserError:  # There is none yet, or it will be made again.
        return []
    scored = set()
    for metrics in experiment.metrics:
        first, second, *_ = Path(metrics).relative_to(f"{experiment.root}/metrics").parts
        scored.add(f"{first} {second}" if first in experiment.captioners else second)
    rows = summary[["model", "decoding"]].drop_duplicates().itertuples(index=False)
    systems = [f"{model} {decoding}".strip() for model, decoding in rows]
    return [system for system in systems if system not in scored]


def describe(experiment: str, jobs: list[PlannedJob], verbose: bool) -> Iterator[str]:
    yield f"{experiment}: {len(jobs)} jobs to run\n" if jobs else f"{experiment}: everything is up to date"
    width = max((len(job.name) for job in jobs), default=0)
    yield from (f"  {job.name:{width}}  {'; '.join(job.causes)}" for job in jobs if job.causes)
    following = [job.name for job in jobs if not job.causes]
    if following and verbose:
        yield from ("", "and because of these:", *(f"  {name}" for name in following))
    elif following:
        yield f"\nand {len(following)} that follow from these (--verbose lists them)"
    if any(job.runs for job in jobs):
        yield f"\n{_RUNNING}"


app = typer_app(main)
