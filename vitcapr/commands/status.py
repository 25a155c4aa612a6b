"""Say what a run would compute again, and why."""

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
    jobs = planned_jobs(files)
    lost = list(lost_stores(Path(experiment.root)))
    lines = describe(experiment.name, jobs, verbose) if jobs or not lost else []
    lines += [f"  {line}" for line in extractions(experiment, jobs)]
    if gone := ", ".join(systems_left(experiment)):
        lines.append(f"  no longer in the tables: {gone}")
    run = " ".join(["snakemake --cores 2", *(f"--configfile {file}" for file in files)])
    for sealed, forced in lost:
        again = f"pull it again, or run\n  {run} {forced}" if forced else "import it again"
        lines.append(f"the store of {sealed} is gone; {again}")
    print_lines(*lines)


def systems_left(experiment: Experiment) -> list[str]:
    """What the last ``summary.csv`` has scores of and the experiment no longer scores: ``attention greedy``."""
    from vitcapr.formats.scores import read_summary

    path = Path(experiment.root, "summary.csv")
    try:
        summary = read_summary(path)
    except UserError:  # There is none yet, or it will be made again.
        return []
    scored = set()
    for metrics in experiment.metrics:
        first, second, *_ = Path(metrics).relative_to(f"{experiment.root}/metrics").parts
        scored.add(f"{first} {second}" if first in experiment.captioners else second)
    rows = summary[["model", "decoding"]].drop_duplicates().itertuples(index=False)
    systems = [f"{model} {decoding}".strip() for model, decoding in rows]
    return [system for system in systems if system not in scored]


def extractions(experiment: Experiment, jobs: list[PlannedJob]) -> list[str]:
    """For each backbone to run, how many images lack features. Nothing before the data set and the backbone are up to
    date."""
    backbones = dict.fromkeys(job.name.split()[1].partition("/")[0] for job in jobs if job.rule == "extract")
    if not backbones or any(job.rule in ("data", "train_backbone") for job in jobs):
        return []
    counts = {name: images_to_extract(experiment, name) for name in backbones}
    return [f"{name}: {count}" for name, count in counts.items() if count is not None]


def images_to_extract(experiment: Experiment, backbone: str) -> str | None:
    """``100 of 600 images to extract``; None if the backbone is not in a local folder. It reads the manifest."""
    import numpy as np

    from vitcapr.encoders.photographs import image_recipe
    from vitcapr.encoders.precision import resolve_device
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.pipeline.code import code_hash, job_code
    from vitcapr.pipeline.paths import stores_root
    from vitcapr.pipeline.records import CODE_DIGESTS
    from vitcapr.stages.extract import images_in_chunk
    from vitcapr.store.known_rows import KnownRows
    from vitcapr.store.rows import Rows

    config, results = experiment.config, experiment.results
    if not experiment.is_trained(backbone) and not list(config.backbones[backbone].user_files()):
        return None
    source, settings = experiment.backbone_source(backbone), config.backbones[backbone]
    device, changes = resolve_device(config.features.device), settings.values("source")
    recipe = image_recipe(source, device, name=settings.source, **changes)
    code = code_hash(job_code("vitcapr.stages.extract", {"backbone": settings.canonical()}, results / CODE_DIGESTS))
    images = Rows.of_images(read_manifest(Path(experiment.root, "data/manifest.json")))
    chunk = images_in_chunk(config.features, settings)
    known = KnownRows.none(len(images), chunk)
    if config.features.reuse:
        attributes = {**recipe.attributes, "code": code}
        known = KnownRows.find(stores_root(results), attributes, np.concatenate(list(images.digests())), chunk)
    return f"{int((known.source < 0).sum())} of {len(images)} images to extract"


def describe(experiment: str, jobs: list[PlannedJob], verbose: bool = False) -> list[str]:
    if not jobs:
        return [f"{experiment}: everything is up to date"]
    width = max(len(job.name) for job in jobs)
    lines = [f"{experiment}: {len(jobs)} jobs to run", ""]
    lines += [f"  {job.name:{width}}  {'; '.join(job.causes)}" for job in jobs if job.causes]
    following = [job.name for job in jobs if not job.causes]
    if following and verbose:
        lines += ["", "and because of these:", *(f"  {name}" for name in following)]
    elif following:
        lines += ["", f"and {len(following)} that follow from these (--verbose lists them)"]
    if any(job.runs for job in jobs):
        lines += ["", _RUNNING]
    return lines


app = typer_app(main)
