"""Planned jobs of a run and their reasons, from Snakemake's Python interface and the run records."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError

RUNS_NOW = "runs now"
"""The reason of a job that Snakemake has started already."""


@contextmanager
def planned_dag(configfiles: Sequence[Path], cores: int = 1) -> Iterator[Any]:
    """Snakemake's DAG of a dry run in this folder, with this number of cores.

    Raises:
        UserError: Snakemake fails; the message is the last line of its error.
    """
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
    """Return the jobs of a run, such as ``decode attention/beam/test``, the reasons of each to run, and its shortcut.

    Target rules are left out.

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
