"""Say what a run would compute again, and why."""

from collections.abc import Iterator
from pathlib import Path

from vitcapr.commands.main import Configfiles, typer_app
from vitcapr.commands.shortcuts import RESTORED, Shortcuts
from vitcapr.experiment.experiment import load_experiment
from vitcapr.pipeline.dry_run import RUNS_NOW, planned_jobs
from vitcapr.pipeline.run_records import read_runs
from vitcapr.progress import print_lines
from vitcapr.store.check import lost_stores
from vitcapr.workers import usable_cores


def main(configfile: Configfiles = None) -> None:
    """Print which stages a run would compute again, with the reasons. Computes nothing."""
    files = configfile or []
    experiment = load_experiment(*files)
    cores = usable_cores()
    jobs = planned_jobs(files, cores, Shortcuts(Path(experiment.root).parent).of)
    lost = list(lost_stores(Path(experiment.root)))
    lines = list(describe(experiment.name, jobs, cores)) if jobs or not lost else []
    if accepted := sum(bool(each.accepted) for each in read_runs(Path(experiment.root), quiet=True)):
        lines.append(f"{accepted} results were accepted as they are; vitcapr why FILE says what differed")
    run = " ".join(["snakemake --cores 2", *(f"--configfile {file}" for file in files)])
    for sealed, forced in lost:
        again = f"pull it again, or run\n  {run} {forced}" if forced else "import it again"
        lines.append(f"the store of {sealed} is gone; {again}")
    print_lines(*lines)


def describe(experiment: str, jobs: list[tuple[str, list[str], str]], cores: int) -> Iterator[str]:
    """Yield the jobs with reasons of their own, a line each; those that only follow from others are counted.

    Args:
        jobs: name, reasons and shortcut of each.
        cores: with another number of threads, a training gives other bytes, and is not restored.
    """
    yield f"{experiment}: {len(jobs)} jobs to run\n" if jobs else f"{experiment}: everything is up to date"
    width = max((len(name) for name, _, _ in jobs), default=0)
    yield from (f"  {name:{width}}  {'; '.join(reasons)}" for name, reasons, _ in jobs if reasons)
    if following := sum(not reasons for _, reasons, _ in jobs):
        yield f"\nand {following} that follow from these (snakemake --dry-run lists them)"
    if restored := [name for name, _, shortcut in jobs if shortcut == RESTORED]:
        yield f"\n{RESTORED}, with --cores {cores}: {', '.join(restored)}"
    yield from (f"\n{name}: {shortcut}" for name, _, shortcut in jobs if shortcut not in ("", RESTORED))
    if any(RUNS_NOW in reasons for _, reasons, _ in jobs):
        yield "\nSnakemake runs here. If it does not, it was killed: snakemake --unlock"


app = typer_app(main)
