"""Accept results as they are, although code, settings or files have changed; each record says who did and why."""

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from vitcapr.commands.main import Configfiles, typer_app
from vitcapr.commands.status import job_name, planned_dag
from vitcapr.errors import UserError
from vitcapr.experiment.rule import rule_stage
from vitcapr.experiment.staleness import OTHER_FILES, files_of
from vitcapr.files import read_json, write_json
from vitcapr.pipeline.code import job_code
from vitcapr.pipeline.run import measure
from vitcapr.pipeline.run_records import file_facts, read_run, record_of_log
from vitcapr.pipeline.stage import DEVICE, Role
from vitcapr.progress import print_lines

ROWS = 64
"""Rows of a feature store that are computed again before it is accepted."""


def main(
    configfile: Configfiles = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Accept the results; without this option they are only listed.")
    ] = False,
) -> None:
    """List the stale results that a run would make again and that exist, with reasons; --yes accepts them.

    Use it only if you know that the change cannot alter them. Features are compared: 64 rows of each store are
    computed again by the present code. Nothing else is computed.
    """
    with planned_dag(configfile or []) as dag:
        accepted, compared = 0, dict[Path, tuple[str, str]]()
        for job, reasons in stale_jobs(dag):
            problem = _obstacle(job, reasons)
            if yes and not problem and (sealed := _sealed_store(job)):
                compared[sealed] = compared.get(sealed) or compare_rows(
                    sealed, Path(str(job.input.manifest)), _source(job)
                )
                problem, sample = compared[sealed]
                reasons = [*reasons, sample]
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


def _obstacle(job: Any, reasons: list[str]) -> str:
    """Say why the result of a job cannot be accepted; return an empty string if it can."""
    if not all(Path(str(file)).is_file() for file in [*job.output, *job.input]):
        return "a file is gone"
    if OTHER_FILES in reasons:
        return "no change of code explains that"
    record = record_of_log(Path(str(job.log[0])))
    try:
        read_run(record or Path())
    except UserError:
        return "no record says how it was made"
    return ""


def _sealed_store(job: Any) -> Path | None:
    """Return the sealed manifest of the features that a job has computed; None for other jobs."""
    rule = rule_stage(job.rule)
    if rule is None or not {"stores", DEVICE} <= rule.stage.parameters.keys():
        return None
    output = Path(str(job.output[0]))
    return output if output.name == "manifest.json" else output.parents[1] / "manifest.json"


def compare_rows(sealed: Path, manifest: Path, source: str) -> tuple[str, str]:
    """Compute some rows of a feature store again, by the present code.

    Args:
        manifest: of the data set.
        source: hub id or folder of the checkpoint.

    Returns:
        Why the features cannot be accepted, empty if they can; and what was compared.
    """
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.extensions.exchange.row_audit import audit
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.store.reader import open_features

    if not sealed.is_file():
        return "its store is not sealed", ""
    try:
        with open_features(sealed) as store:
            if not store.attributes.get("weights_sha256"):
                return "", "decoded pictures, not compared"
            data, seed = read_manifest(manifest), secrets.randbits(32)
            stated = audit(store, data, ROWS, seed, source, resolve_device("auto"), print_lines)
    except UserError as error:
        return str(error), ""
    return (stated.fault or "") if stated.verdict == "different" else "", stated.summary()


def _source(job: Any) -> str:
    """Return the hub id or folder of the checkpoint that a job computes features with."""
    if trained := files_of(job.input, "backbone"):
        return str(trained[0].parent)
    rule = rule_stage(job.rule)
    assert rule is not None
    settings = rule.settings(job.wildcards)
    return str((settings.get("backbone") or settings["text_encoder"])["source"])


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
        "settings": rule.settings(job.wildcards),
        "values": {**before["values"], **{name: each for name, each in now["values"].items() if each is not None}},
        "files": now["files"],
        "names": now["names"],
        "inputs": file_facts({each.name: files_of(job.input, each.name) for each in stage.of_role(Role.INPUT)}),
        "outputs": file_facts({each.name: files_of(job.output, each.name) for each in stage.of_role(Role.OUTPUT)}),
        "accepted": [*before.get("accepted", []), act],
    }
    write_json(record, content)


app = typer_app(main)
