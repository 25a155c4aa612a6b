"""Say what a run would compute again, and why."""

import json
import logging
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vitcapr.commands.main import Configfiles, typer_app
from vitcapr.commands.stage import read_job
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import load_experiment
from vitcapr.experiment.rule import rule_stage
from vitcapr.files import sha256_file
from vitcapr.pipeline.result_cache import open_result_cache
from vitcapr.pipeline.run import Job
from vitcapr.pipeline.run_records import read_runs
from vitcapr.pipeline.stage import Role
from vitcapr.progress import print_lines
from vitcapr.store.check import lost_stores
from vitcapr.workers import usable_cores

RESTORED = "restored from the result cache"
RUNS_NOW = "runs now"
"""The reason of a job that Snakemake has started already."""


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


@contextmanager
def planned_dag(configfiles: Sequence[Path], cores: int = 1) -> Iterator[Any]:
    """Yield Snakemake's DAG of a dry run in this folder; its failure is a UserError with its last line."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings

    output = OutputSettings(dryrun=True, enable_file_logging=False, log_level_override=logging.CRITICAL)
    with SnakemakeApi(output) as snakemake:
        try:
            workflow = snakemake.workflow(ResourceSettings(cores=cores), ConfigSettings(configfiles=list(configfiles)))
            workflow.dag(DAGSettings(force_incomplete=True)).execute_workflow(executor="dryrun")
        except (Exception, SystemExit) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            what = lines[-1].strip().removeprefix("error: ")
            raise UserError(f"snakemake --dry-run: {what}", where=Path.cwd()) from error
        yield workflow._workflow.dag


def planned_jobs(
    configfiles: Sequence[Path], cores: int, shortcut: Callable[[Any], str]
) -> list[tuple[str, list[str], str]]:
    """Return the jobs of a run without target rules, the reasons of each to run, and its shortcut.

    A job without reasons only follows from others. A job comes after those whose outputs it reads.
    """
    with planned_dag(configfiles, cores) as dag:
        needed = set(dag.needrun_jobs(exclude_finished=False))
        levels = ([job for job in level if job in needed and job.output] for level in dag.toposorted())
        jobs = (job for level in levels for job in sorted(level, key=job_name))
        return [(job_name(job), _reasons(dag, job), shortcut(job)) for job in jobs]


def job_name(job: Any) -> str:
    """Return the rule and the wildcards of a job, such as ``decode attention/beam/test``."""
    rule, wildcards = job.rule.name.removesuffix("_attentively"), list(job.wildcards_dict.values())
    return f"{rule} {'/'.join(wildcards[1:])}".strip()  # The first is the experiment, which all jobs share.


def _reasons(dag: Any, job: Any) -> list[str]:
    reason, persistence = dag.reason(job), dag.workflow.persistence
    started = persistence._filter_incomplete_keys([persistence._get_key(file) for file in job.output])
    if started and persistence.locked:
        return [RUNS_NOW]
    follows = reason.updated_input_run and not reason.missing_output
    return [] if follows else list(persistence.params_changed(job))


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


@dataclass
class Shortcuts:
    """Work that planned jobs are spared. Ask for a job after those whose outputs it reads.

    Attributes:
        results: the folder of all results.
        digests: sha256 of the files that restored jobs will write.
        unknown: the files that other planned jobs will write.
    """

    results: Path
    digests: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)

    def of(self, job: Any) -> str:
        """Return ``RESTORED``, or the store that holds features of a job of Snakemake; empty if it computes all."""
        declared, outputs = rule_stage(job.rule), set(map(str, job.output))
        if declared is None or self.unknown & set(map(str, job.input)):
            self.unknown |= outputs
            return ""
        planned = Job(declared.stage, read_job(shlex.split(job.params.command)[-1]))
        cache = open_result_cache(self.results) if declared.stage.cached else None
        entry = None if cache is None else cache.find(self._key(planned, job))
        if entry is None:
            self.unknown |= outputs
            with suppress(UserError):  # Without the checkpoint, nobody knows the store.
                return _store(planned)
            return ""
        targets = planned.targets()
        self.digests |= {targets[name].as_posix(): digest for name, digest in entry.files.items() if name in targets}
        return RESTORED

    def _key(self, planned: Job, job: Any) -> str:
        made_of = json.loads(job.params.fingerprint)
        del made_of["names"]
        read = (path for each in planned.stage.of_role(Role.INPUT) for path in each.paths(planned.values[each.name]))
        inputs: Any = {path.as_posix(): {"sha256": digest} for path in read if (digest := self._digest(path))}
        return planned.result_key(made_of, inputs, job.threads)

    def _digest(self, path: Path) -> str:
        return self.digests.get(path.as_posix()) or (sha256_file(path) if path.is_file() else "")


def _store(planned: Job) -> str:
    """Return how many chunks of the store of an extraction are finished; empty without one, and for other jobs.

    The plan of the store is that of the stages ``extract`` and ``extract_text``.
    """
    if planned.stage.name not in ("extract", "extract_text"):
        return ""
    os.environ["HF_HUB_OFFLINE"] = "1"  # A status waits for no network.
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.encoders.image_recipe import image_recipe
    from vitcapr.encoders.text_encoders import TextRecipe
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.stages.extract import images_in_chunk
    from vitcapr.store.caption_rows import CHUNK
    from vitcapr.store.fill import StorePlan
    from vitcapr.store.layout import Rows, chunk_range
    from vitcapr.store.writer import StoreWriter, read_layouts

    values, settings = planned.values, planned.values["settings"]
    data, device = read_manifest(values["manifest"]), resolve_device(values["device"])
    if planned.stage.name == "extract":
        config = settings.backbone
        source = config.source if values["backbone"] is None else str(values["backbone"])
        attributes = image_recipe(source, device, name=config.source, **config.values("source")).attributes
        rows, chunk = Rows.of_images(data), images_in_chunk(settings.features, config)
    else:
        config = settings.text_encoder
        attributes = dict(TextRecipe(device=device, **config.values("store_dtype")).attributes)
        attributes["store_dtype"] = config.store_dtype
        rows, chunk = Rows.of_captions(data), CHUNK
    plan = StorePlan(Path(values["stores"]), rows, attributes, chunk, planned.code)
    chunks = chunk_range(plan.chunks, values.get("task", 0), values.get("tasks", 1))
    store = StoreWriter(plan.folder, read_layouts(plan.folder))
    finished = sum(store.checksums(index) is not None for index in chunks) if store.layouts else 0
    return f"{finished} of {len(chunks)} chunks are in {plan.folder}" if finished else ""


app = typer_app(main)
