"""Say what a run would compute again, and why."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, NamedTuple

import typer

from vitcapr.commands.main import Configfiles, typed
from vitcapr.experiment.experiment import Experiment, load_experiment
from vitcapr.pipeline.comparison import code_changes, differences
from vitcapr.pipeline.dry_run import dry_run


class PlannedJob(NamedTuple):
    """A job that Snakemake's dry run lists, and Snakemake's reason."""

    rule: str
    name: str
    reason: str


def main(
    configfile: Configfiles = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also list the jobs that run only because others do.")
    ] = False,
) -> None:
    """Print which stages a run would compute again, with the reasons. Computes nothing."""
    files = configfile or []
    experiment = load_experiment(*files)
    jobs = parse_jobs(dry_run(files))
    print("\n".join(describe(experiment.name, jobs, verbose)))
    for line in extractions(experiment, jobs):
        print(f"  {line}")
    if gone := ", ".join(systems_left(experiment)):
        print(f"  no longer in the tables: {gone}")


def systems_left(experiment: Experiment) -> list[str]:
    """What the last ``summary.csv`` has scores of and the experiment no longer scores: ``attention greedy``."""
    from vitcapr.formats.scores import read_summary

    path = Path(experiment.root, "summary.csv")
    if not path.is_file():
        return []
    scored = set()
    for metrics in experiment.metrics:
        first, second, *_ = Path(metrics).relative_to(f"{experiment.root}/metrics").parts
        scored.add(f"{first} {second}" if first in experiment.captioners else second)
    rows = read_summary(path)[["model", "decoding"]].drop_duplicates().itertuples(index=False)
    systems = [f"{model} {decoding}".strip() for model, decoding in rows]
    return [system for system in systems if system not in scored]


def parse_jobs(text: str) -> list[PlannedJob]:
    """The jobs in the output of a dry run, in its order, without target rules."""
    jobs = []
    for block in re.split(r"^(?:local)?rule (?=\w+:$)", text, flags=re.MULTILINE)[1:]:
        rule = block.partition(":")[0]
        fields = dict(re.findall(r"^    (\w+): (.*)$", block, flags=re.MULTILINE))
        if "output" not in fields:
            continue
        wildcards = [item.partition("=")[2] for item in fields.get("wildcards", "").split(", ")]
        # The first wildcard is the experiment, which all jobs share.
        name = " ".join([rule.removesuffix("_attentively"), "/".join(wildcards[1:])]).strip()
        jobs.append(PlannedJob(rule, name, fields.get("reason", "")))
    return jobs


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
    from vitcapr.store.known_rows import KnownRows
    from vitcapr.store.rows import Rows

    config, results = experiment.config, experiment.results
    job = SimpleNamespace(backbone=backbone)
    if not experiment.is_trained(backbone) and not experiment.backbone_files(job):
        return None
    source, settings = experiment.backbone_source(job), config.backbones[backbone]
    device, changes = resolve_device(config.features.device), settings.values("source")
    recipe = image_recipe(source, device, name=settings.source, **changes)
    code = code_hash(job_code("vitcapr.stages.extract", {"backbone": settings.canonical()}, results / CODE_DIGESTS))
    images = Rows.of_images(read_manifest(Path(experiment.root, "data/manifest.json")))
    chunk = config.features.images_in_chunk(settings)
    known = KnownRows.none(len(images), chunk)
    if config.features.reuse:
        attributes = {**recipe.attributes, "code": code}
        known = KnownRows.find(stores_root(results), attributes, np.concatenate(list(images.digests())), chunk)
    return f"{int((known.source < 0).sum())} of {len(images)} images to extract"


def describe(experiment: str, jobs: list[PlannedJob], verbose: bool = False) -> list[str]:
    if not jobs:
        return [f"{experiment}: everything is up to date"]
    width = max(len(job.name) for job in jobs)
    stale = {job.name: list(_causes(job.reason)) for job in jobs}
    lines = [f"{experiment}: {len(jobs)} jobs to run", ""]
    lines += [f"  {name:{width}}  {'; '.join(causes)}" for name, causes in stale.items() if causes]
    following = [name for name, causes in stale.items() if not causes]
    if following and verbose:
        lines += ["", "and because of these:", *(f"  {name}" for name in following)]
    elif following:
        lines += ["", f"and {len(following)} that follow from these (--verbose lists them)"]
    return lines


_CAUSES = {
    "Missing output files": "not computed yet",
    "Incomplete output files": "was interrupted",
    "Updated input files": "newer input",
    "Set of input files has changed": "it reads other files than before",
    "Software environment definition has changed": "its environment changed",
    "Code has changed": "its rule changed",
    "Forced": "forced",
}
"""What Snakemake says, in our words."""


def _causes(reason: str) -> Iterator[str]:
    """A job's own reasons to run again; none if it only follows from other jobs."""
    for snakemakes, ours in _CAUSES.items():
        if snakemakes in reason:
            files = reason.partition(f"{snakemakes}: ")[2].partition(";")[0].strip()
            yield f"{ours}: {files}" if ours == "newer input" else ours
    if "Params have changed" in reason:
        yield from _changes(reason)


def _changes(reason: str) -> Iterator[str]:
    """What differs between the recorded and the present fingerprint of a job."""
    literals = re.findall(r"'(?:[^'\\]|\\.)*'", reason.partition("Params have changed")[2])
    recorded = [value for value in map(ast.literal_eval, literals) if value.startswith('{"code":')]
    if len(recorded) < 2:
        yield "its parameters changed"
        return
    # Snakemake prints the earlier values first and the present value last.
    before, now = json.loads(recorded[0]), json.loads(recorded[-1])
    yield from code_changes(before["code"], now["code"])
    for key, old, new in differences(before["settings"], now["settings"]):
        yield f"{key} {old} -> {new}"
    for key in sorted(before["sources"].keys() | now["sources"].keys()):
        if before["sources"].get(key) != now["sources"].get(key):
            yield f"the content of {key} changed"


app = typed(main)
