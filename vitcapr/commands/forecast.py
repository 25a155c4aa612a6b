"""Forecast of a run's time and memory: the records of earlier jobs on this machine, scaled by their work."""

import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log2
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from snakemake.logging import logger

from vitcapr.commands.status import planned_dag
from vitcapr.errors import UserError, as_user_error
from vitcapr.experiment.checks import lacks
from vitcapr.experiment.experiment import Experiment
from vitcapr.experiment.lineage import differences
from vitcapr.files import sha256_file
from vitcapr.pipeline.fingerprint import without_paths
from vitcapr.pipeline.run_records import Run, read_runs
from vitcapr.pipeline.stage import find_stage, stage_names
from vitcapr.progress import format_bytes, format_seconds
from vitcapr.workers import usable_cores

FIRST_RUN = "not known yet; a first run records it, or --measure"
MODEL = ("architecture", "kind", "source")
"""Settings that name a model: the costs of two jobs with different models do not compare."""
NO_JOBS: Mapping[int, float] = {}
START = 5.0
"""Seconds until a job begins to work, at most, which do not grow with the work; of a short job, half of its time."""
TRIAL = 1200
"""Images of the larger trial, at most; the smaller has a third."""


class Step(NamedTuple):
    """A job that a run starts, or that ran.

    Attributes:
        settings, values: those that determine its result.
        models: the names of the models that it trains or reads, and the objectives of its training.
        after: the numbers of the steps that it waits for.
    """

    rule: str
    stage: str
    settings: dict[str, Any]
    values: dict[str, Any]
    models: frozenset[str]
    after: Sequence[int] = ()

    def work(self, sizes: Mapping[str, int] | None) -> float:
        """Images by split times epochs or beams; 1 for a figure, and for a job that reads no data set (None)."""
        if sizes is None or find_stage(self.stage).draws:
            return 1.0
        epochs, split = sum(_named(self.settings, "epochs")), self.values.get("split")
        beams = max([1, *_named(self.settings, "beam_size", "n_best")])
        images = sizes.get("train" if epochs else split or "", 0) or sum(sizes.values())
        return float(images * (epochs or 1) * beams / self.values.get("tasks", 1))


class Recorded(NamedTuple):
    """A finished job, what it computed, and the images of its data set by split."""

    run: Run
    step: Step
    sizes: Mapping[str, int] | None

    @property
    def work(self) -> float:
        """The work of the job, as :meth:`Step.work` counts it."""
        return self.step.work(self.sizes)

    def is_smaller_than(self, other: "Recorded") -> bool:
        """Return whether this job did at most half the work of the other, with the same settings and threads."""
        same = self.step.settings == other.step.settings and self.run.made["threads"] == other.run.made["threads"]
        return same and 2 * self.work <= other.work


class Cost(NamedTuple):
    """Seconds, megabytes and threads of a step, and the experiment that recorded the like."""

    seconds: float
    memory: int
    threads: int
    experiment: str


def forecast(root: Path, sizes: Mapping[str, int], configfiles: Sequence[Path]) -> list[str]:
    """Return the time and memory of each rule that a run would start now, and the least time of the run.

    Args:
        root: the folder of the experiment, among those of all results.
        sizes: the images of the experiment by split; if they are not known, those of its last run count.
    """
    try:
        recorded = read_recorded(root.parent)
        if not recorded:
            return [f"time and memory: {FIRST_RUN}"]
        steps = planned_steps(configfiles)
        sizes = sizes or _own_sizes(root, recorded)
    except UserError as error:
        return [f"time and memory: not known; {error}"]
    return describe(steps, [cost(step, sizes, recorded) for step in steps], usable_cores())


def _own_sizes(root: Path, recorded: Sequence[Recorded]) -> Mapping[str, int]:
    """Return the images of the last run of an experiment by split."""
    own = (job.sizes for job in recorded if job.sizes and Path(job.run.folder or "").name == root.name)
    return next(own, {})


def run_trials(experiment: Experiment, images: int, configfiles: Sequence[Path]) -> None:
    """Run the experiment on few of its images, at most a quarter, and on a third of those: both are records.

    The trials are experiments of their own, ``NAME-trial-400`` for instance. They compute all that they need. A data
    set of pairs has none.
    """
    data = experiment.config.data.dataset
    if data == "pairs":
        raise UserError("pairs have no trial", where="--measure", remedy="the records of a first run give the forecast")
    large = min(TRIAL, images // 4)
    for number in (large // 3, large):
        limit = {experiment.dataset.limit_key: number}
        values = {
            "experiment": f"{experiment.name}-trial-{number}",
            "data": {data: limit},
            "features": {"reuse": False},
        }
        with TemporaryDirectory() as folder:
            override = Path(folder) / "trial.yaml"
            override.write_text(json.dumps(values), encoding="utf-8")
            files = [*(configfiles or [Path("config.yaml")]), override]
            options = ["--cores", "all", "--keep-going", "--configfile", *map(str, files)]
            subprocess.run(
                [sys.executable, "-m", "snakemake", *options],
                env=os.environ | {"VITCAPR_RESULT_CACHE": "off"},
                check=False,
            )


def read_recorded(results: Path) -> list[Recorded]:
    """Return the jobs of this machine on the data sets that the experiments still have, the latest first."""
    from vitcapr.formats.manifest import read_manifest

    jobs = []
    for manifest in sorted(results.glob("*/data/manifest.json")):
        digest, sizes = sha256_file(manifest), Counter(read_manifest(manifest).images["split"])
        runs = read_runs(manifest.parents[1])
        makers = {path: run for run in runs for path in run.outputs}
        for run in runs:
            files = {run.place(path): facts["sha256"] for path, facts in (run.inputs | run.outputs).items()}
            data = files.get("data/manifest.json")
            is_of_here = run.made["host"] == socket.gethostname() and run.stage in stage_names()
            if is_of_here and data in (None, digest):
                settings = without_paths(find_stage(run.stage).result_settings(run.settings), run.files)
                before = ((m.stage, m.settings) for path in run.inputs if (m := makers.get(path)))
                models = _models(settings, run.files, before)
                step = Step(run.name, run.stage, settings, run.values, models)
                jobs.append(Recorded(run, step, sizes if data else None))
    return sorted(jobs, key=lambda job: job.run.time, reverse=True)


def planned_steps(configfiles: Sequence[Path]) -> list[Step]:
    """Return the steps that a run would compute, every step after those that it waits for."""
    with planned_dag(configfiles) as dag:
        return list(steps_by_job(dag).values())


def steps_by_job(dag: Any) -> dict[int, Step]:
    """Return the steps of Snakemake's DAG by the numbers of their jobs, every step after those that it waits for."""
    needed = set(dag.needrun_jobs(exclude_finished=False))
    jobs = [job for level in dag.toposorted() for job in level if job in needed and _is_of_stage(job)]
    numbers, steps = {job: number for number, job in enumerate(jobs)}, {}
    for job in jobs:
        declared, made = dict(job.rule.params.items())["command"].__self__, json.loads(job.params.fingerprint)
        above = [each for each in dag.dependencies[job] if _is_of_stage(each)]
        before = [(each.rule.name, json.loads(each.params.fingerprint)["settings"]) for each in above]
        after = [numbers[each] for each in above if each in numbers]
        values = {**made["values"], **{name: declared.bound[name] for name in {"tasks"} & declared.bound.keys()}}
        models = _models(made["settings"], made["files"], before)
        rule = job.rule.name.removesuffix("_attentively")
        steps[dag.jobid(job)] = Step(rule, declared.stage.name, made["settings"], values, models, after)
    return steps


def _is_of_stage(job: Any) -> bool:
    """Return whether a job runs a stage: a rule of the user's own may run anything."""
    return "fingerprint" in job.params.keys()  # noqa: SIM118


class TimeLeft:
    """Forecast of the rest of a run, by the records that were there when it began.

    Args:
        steps: those of the run, by the numbers of their jobs.
        root: the folder of the experiment.
        cores: those that the run may use.

    Raises:
        UserError: the records cannot be read.
    """

    def __init__(self, steps: Mapping[int, Step], root: Path, cores: int) -> None:
        recorded, self._steps, self._cores = read_recorded(root.parent), list(steps.values()), cores
        sizes = _own_sizes(root, recorded)
        self._costs = {number: cost(step, sizes, recorded) for number, step in steps.items()}

    def __call__(self, done: Mapping[int, float] = NO_JOBS, running: Mapping[int, float] = NO_JOBS) -> str:
        """Return the text ``at least 1:12 left``; empty if the time of no step is known.

        The rest takes longer than the records say, in the proportion in which the finished jobs did.

        Args:
            done, running: the seconds that finished jobs took, and those that running ones have taken.
        """
        known = {number: one for number, one in self._costs.items() if one is not None}
        expected = sum(known[number].seconds for number in done if number in known)
        pace = max(1.0, sum(done[number] for number in done if number in known) / max(expected, 1.0))
        costs: list[Cost | None] = []
        for number, one in self._costs.items():
            if one is not None:
                rest = 0.0 if number in done else max(pace * one.seconds - running.get(number, 0.0), 0.0)
                one = one._replace(seconds=rest)
            costs.append(one)
        if not known:
            return ""
        unknown = sum(1 for number in self._costs if number not in {*known, *done, *running})
        left = format_seconds(least_time(self._steps, costs, self._cores))
        return f"at least {left} left{f', {unknown} steps not known' if unknown else ''}"


def begin(workflow: Any, experiment: Experiment, folder: Path) -> None:
    """Check what the planned jobs of a run need, before the first starts, and log the time that they take."""
    needed = [str(dict(job.params.items()).get("fingerprint")) for job in workflow.dag.needrun_jobs()]
    if problems := list(lacks(experiment, needed)):
        sys.exit(f"error: {as_user_error(problems)}")
    try:
        time_left = TimeLeft(steps_by_job(workflow.dag), folder, workflow.resource_settings.cores or 1)
        logger.info(time_left(), extra={"time_left": time_left})
    except UserError as error:
        logger.warning(f"time left: not known; {error}")


def cost(step: Step, sizes: Mapping[str, int], recorded: Sequence[Recorded]) -> Cost | None:
    """Return the cost of a step by the record that is nearest to it in settings and work; None without a like record.

    A second record of the same settings and at most half the work tells how much of the CPU time and the memory grows
    with the work; other programs disturb the CPU time less than the time.
    """
    costs = []
    like = [job for job in recorded if (job.step.stage, job.step.models) == (step.stage, step.models)]
    for near in like:
        if not (sizes or near.sizes is None):
            continue
        seconds, memory = near.run.made["seconds"], near.run.made["peak_memory_mb"]
        done, todo = near.work, step.work(None if near.sizes is None else sizes)
        small = min((job for job in like if job.is_smaller_than(near)), key=lambda job: job.work, default=None)
        start = min(START, seconds / 2)
        if small is not None:
            share, before = 1 - small.work / done, small.run.made
            start = seconds * max(0.0, 1 - max(0.0, 1 - before["cpu_seconds"] / near.run.made["cpu_seconds"]) / share)
            memory += round(max(0, memory - before["peak_memory_mb"]) / share * (todo / done - 1))
        expected = start + (seconds - start) * todo / done
        distance = (0, len(list(differences(near.step.settings, step.settings))) + abs(log2(todo / done)))
        if step.stage == "extract":  # A faster record may be of fewer images, because a store had the others.
            distance = (small is None, -expected)
        experiment = Path(near.run.folder or "").name
        costs.append((distance, Cost(expected, memory, near.run.made["threads"], experiment)))
    if not costs:
        return None
    nearest = min(costs, key=lambda each: each[0])[1]
    largest = max(job.run.made["peak_memory_mb"] for job in like)
    return nearest._replace(memory=max(nearest.memory, largest))


def describe(steps: Sequence[Step], costs: Sequence[Cost | None], cores: int) -> list[str]:
    """Return a line for each rule, and the least time of the run."""
    if not steps:
        return ["time and memory: everything is up to date"]
    rules: dict[str, list[Cost | None]] = {}
    for step, each in zip(steps, costs, strict=True):
        rules.setdefault(step.rule, []).append(each)
    width = max(map(len, rules))
    lines, unknown = [f"{'rule':{width}}  steps     time    memory  recorded in"], []
    for rule, all_costs in rules.items():
        known = [each for each in all_costs if each is not None]
        if len(known) < len(all_costs):
            unknown.append(rule if len(all_costs) == 1 else f"{rule} ({len(all_costs)})")
            continue
        memory = format_bytes(max(each.memory for each in known) * 1_000_000)
        experiments = ", ".join(sorted({each.experiment for each in known}))
        time = format_seconds(sum(each.seconds for each in known))
        lines.append(f"{rule:{width}}  {len(all_costs):5}  {time:>7}  {memory:>8}  {experiments}")
    if unknown:
        lines.append(f"{FIRST_RUN}: {', '.join(unknown)}")
    without = f"; steps not known yet: {costs.count(None)}" if unknown else ""
    return [*lines, f"in all at least {format_seconds(least_time(steps, costs, cores))} on {cores} cores{without}"]


def least_time(steps: Sequence[Step], costs: Sequence[Cost | None], cores: int) -> float:
    """Return the seconds of the longest chain of steps, or those of all steps over the cores, whichever are more."""
    ends: list[float] = []
    for step, each in zip(steps, costs, strict=True):
        ends.append(max((ends[number] for number in step.after), default=0.0) + (each.seconds if each else 0.0))
    busy = sum(each.seconds * min(each.threads, cores) for each in costs if each) / cores
    return max(busy, *ends)


def _models(settings: Any, files: Mapping[str, str], before: Iterable[tuple[str, Any]]) -> frozenset[str]:
    """Return the models of a job: those of its settings, and those trained by the jobs ``before`` it.

    A job is a pair (stage, settings). A checkpoint in a folder counts by its digest in ``files``.
    """
    trained = [each for stage, each in before if stage.startswith(("train_", "finetune"))]
    local = [digest for key, digest in files.items() if key.endswith(".source")]
    return frozenset(map(str, [*_named(settings, *MODEL), *_named(trained, *MODEL, without="objective"), *local]))


def _named(settings: Any, *keys: str, without: str = "") -> Iterator[Any]:
    """Yield the values of these keys anywhere in plain settings, but not below the key ``without``."""
    pairs = settings.items() if isinstance(settings, dict) else ((None, each) for each in settings)
    for name, value in pairs:
        if name == without:
            continue
        if isinstance(value, dict | list):
            yield from _named(value, *keys, without=without)
        elif name in keys:
            yield value
