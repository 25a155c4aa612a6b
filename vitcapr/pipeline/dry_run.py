"""What Snakemake plans to run and why, from its Python interface."""

import ast
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from vitcapr.errors import UserError
from vitcapr.pipeline.comparison import code_changes, differences


class PlannedJob(NamedTuple):
    """A job that a run would start.

    Attributes:
        name: the rule and the wildcards: ``decode attention/beam/test``.
        causes: its own reasons to run; none if it only follows from other jobs.
        runs: whether Snakemake has started it already.
    """

    rule: str
    name: str
    causes: tuple[str, ...]
    runs: bool = False


@contextmanager
def planned_dag(configfiles: Sequence[Path]) -> Iterator[Any]:
    """Snakemake's DAG of a dry run in this folder.

    Raises:
        UserError: Snakemake fails; the message is the last line of its error.
    """
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings

    output = OutputSettings(dryrun=True, enable_file_logging=False, log_level_override=logging.CRITICAL)
    with SnakemakeApi(output) as snakemake:
        try:
            workflow = snakemake.workflow(ResourceSettings(cores=1), ConfigSettings(configfiles=list(configfiles)))
            workflow.dag(DAGSettings(force_incomplete=True)).execute_workflow(executor="dryrun")
        except (Exception, SystemExit) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            what = lines[-1].strip().removeprefix("error: ")
            raise UserError(f"snakemake --dry-run: {what}", where=Path.cwd()) from error
        yield workflow._workflow.dag


def planned_jobs(configfiles: Sequence[Path]) -> list[PlannedJob]:
    """The jobs of a dry run, without target rules: a job comes after those whose outputs it reads."""
    with planned_dag(configfiles) as dag:
        needed, plan = set(dag.needrun_jobs(exclude_finished=False)), []
        for level in dag.toposorted():
            jobs = ((_name(job), job) for job in level if job in needed and job.output)
            plan += [_planned(dag, name, job) for name, job in sorted(jobs, key=lambda pair: pair[0])]
        return plan


def _name(job: Any) -> str:
    # The first wildcard is the experiment, which all jobs share.
    return " ".join(
        [job.rule.name.removesuffix("_attentively"), "/".join(list(job.wildcards_dict.values())[1:])]
    ).strip()


def _planned(dag: Any, name: str, job: Any) -> PlannedJob:
    reason, persistence = dag.reason(job), dag.workflow.persistence
    started = persistence._filter_incomplete_keys([persistence._get_key(file) for file in job.output])
    if started and persistence.locked:
        return PlannedJob(job.rule.name, name, ("runs now",), runs=True)
    newer = ", ".join(sorted(map(str, reason.updated_input - reason.updated_input_run)))
    causes = {
        "not computed yet": reason.missing_output,
        "was interrupted": reason.forced and started,
        f"newer input: {newer}": newer,
        "it reads other files than before": reason.input_changed,
        "its environment changed": reason.software_stack_changed,
        "its rule changed": reason.code_changed,
    }
    changes = _changes(reason.params_changed) if reason.params_changed else ()
    return PlannedJob(job.rule.name, name, (*(cause for cause, is_one in causes.items() if is_one), *changes))


def _changes(change: Any) -> Iterator[str]:
    """What differs between the recorded and the present fingerprint, which are params that Snakemake keeps as ``repr``
    of their texts."""
    before, now = (
        [json.loads(ast.literal_eval(value)) for value in sorted(values) if value[1:].startswith('{"code":')]
        for values in (change.only_old, change.only_new)
    )
    if not (before and now):
        yield "its parameters changed"
        return
    yield from code_changes(before[0]["code"], now[0]["code"])
    for key, old, new in differences(before[0]["settings"], now[0]["settings"]):
        yield f"{key} {old} -> {new}"
    before_sources, sources = before[0]["sources"], now[0]["sources"]
    for key in sorted(before_sources.keys() | sources.keys()):
        if before_sources.get(key) != sources.get(key):
            yield f"the content of {key} changed"
