"""Accept results as they are, although code, settings or files have changed; each record says who did and why."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from vitcapr.commands.main import Configfiles, typer_app
from vitcapr.errors import UserError
from vitcapr.files import read_json, write_json
from vitcapr.pipeline.code import job_code
from vitcapr.pipeline.dry_run import job_name, planned_dag
from vitcapr.pipeline.records import file_facts, read_run, record_of_log
from vitcapr.pipeline.run import measure
from vitcapr.pipeline.stage import Role
from vitcapr.pipeline.staleness import rule_stage
from vitcapr.progress import print_lines


def main(
    configfile: Configfiles = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the results; without this option they are only listed.")
    ] = False,
) -> None:
    """List the stale results that a run would make again and that exist, with reasons; --yes accepts them.

    Use it only if you know that the change cannot alter them. Nothing is computed or compared.
    """
    with planned_dag(configfile or []) as dag:
        accepted = 0
        for job, reasons in stale_jobs(dag):
            problem = _obstacle(job)
            print_lines(f"  {job_name(job)}  {'; '.join(reasons)}{problem and f'  (not accepted: {problem})'}")
            if not problem:
                accepted += 1
                if yes:
                    accept(job, reasons)
    if not accepted:
        print_lines("nothing to accept")
    else:
        print_lines(f"{accepted} results accepted" if yes else f"{accepted} results can be accepted: repeat with --yes")


def stale_jobs(dag: Any) -> Iterator[tuple[Any, list[str]]]:
    """Yield each job of a stage that is stale by itself, with the reasons."""
    for level in dag.toposorted():
        for job in sorted(level, key=job_name):
            if rule_stage(job.rule) is not None and (reasons := list(dag.workflow.persistence.params_changed(job))):
                yield job, reasons


def _obstacle(job: Any) -> str:
    """Say why the result of a job cannot be accepted; return an empty string if it can."""
    if not all(Path(str(file)).is_file() for file in [*job.output, *job.input]):
        return "a file is gone"
    record = record_of_log(Path(str(job.log[0])))
    try:
        read_run(record or Path())
    except UserError:
        return "no record says how it was made"
    return ""


def accept(job: Any, reasons: list[str]) -> None:
    """Write the present fingerprint and digests into the record of a job, with what differed, by whom and when."""
    rule, record = rule_stage(job.rule), record_of_log(Path(str(job.log[0])))
    assert rule is not None
    assert record is not None
    now, before, stage = json.loads(rule.fingerprint(job.wildcards)), read_json(record), rule.stage
    machine = measure(0)
    act = {
        "user": machine["user"],
        "host": machine["host"],
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "differed": reasons,
    }
    content = {
        **before,
        "code": job_code(stage.module, now["settings"]),
        "settings": now["settings"],
        "values": {**before["values"], **now["values"]},
        "files": now["files"],
        "names": now["names"],
        "inputs": file_facts({each.name: _files(job.input, each.name) for each in stage.of_role(Role.INPUT)}),
        "outputs": file_facts({each.name: _files(job.output, each.name) for each in stage.of_role(Role.OUTPUT)}),
        "accepted": [*before.get("accepted", []), act],
    }
    write_json(record, content)


def _files(named: Any, parameter: str) -> list[Path]:
    given = named.get(parameter) or []
    return [Path(str(file)) for file in ([given] if isinstance(given, str) else given)]


app = typer_app(main)
