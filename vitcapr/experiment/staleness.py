"""Stale jobs: the run record of a job decides, wherever the results lie.

Snakemake keeps what it knows of finished jobs in a hidden folder that does not travel, and takes a job without such
metadata for up to date. :func:`let_records_decide` makes it ask the run records instead, for every rule that runs a
stage: neither the metadata, nor the times of files, nor ``--touch`` count.
"""

import atexit
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vitcapr.data.digests import FileDigests
from vitcapr.errors import UserError
from vitcapr.experiment.lineage import changes
from vitcapr.experiment.rule import rule_stage
from vitcapr.pipeline.code import code_hash, job_code
from vitcapr.pipeline.fingerprint import FILE_DIGESTS, without_paths
from vitcapr.pipeline.run_records import Run, find_experiment_folder, read_run, record_of_log
from vitcapr.pipeline.stage import Role, Stage

OTHER_FILES = "it reads other files than before"


class Changes(tuple[str, ...]):
    """Reasons why a job is stale, in the place of Snakemake's changes of params."""

    def __str__(self) -> str:
        return "; ".join(self)


@dataclass
class RecordedJobs:
    """The jobs of a DAG by their records."""

    digests: FileDigests
    known: dict[Any, Changes] = field(default_factory=dict)

    def changes(self, job: Any) -> Changes:
        """Return the reasons why a job of Snakemake, whose rule runs a stage, is stale."""
        if job not in self.known:
            self.known[job] = Changes(dict.fromkeys(self._reasons(rule_stage(job.rule), job)))
        return self.known[job]

    def _reasons(self, rule: Any, job: Any) -> Iterator[str]:
        outputs = [Path(str(file)) for file in job.output]
        missing = [file for file in outputs if not file.is_file()]
        if missing and rule.stage.shares in dict(job.output.items()):
            return  # Only the whole needs a share, and has a record of its own.
        record = record_of_log(Path(str(job.log[0])))
        if record is None or not record.is_file():
            yield "not computed yet" if missing else "no record says how it was made"
            return
        try:
            run = read_run(record)
        except UserError as error:
            yield str(error)
            return
        yield from (f"{file.name} is gone" for file in missing)
        recorded = {path: facts["sha256"] for path, facts in run.outputs.items()}
        root = find_experiment_folder(str(outputs[0]))
        for file in outputs:
            digest = recorded.get(f"{run.folder}/{str(file).removeprefix(f'{root}/')}")
            if file not in missing and digest != self.digests.of(file):
                yield f"{file.name} is not as it was made" if digest else f"no record of {file.name}"
        now = json.loads(job.params.fingerprint)
        before = recorded_fingerprint(run, rule.stage)
        if now != before:
            code = job_code(rule.stage.module, now["settings"])
            yield from changes({**before, "code": run.code}, {**now, "code": code})
            if now["names"] != before["names"]:
                yield OTHER_FILES
        yield from self._changed_inputs(rule.stage, job, run)

    def _changed_inputs(self, stage: Stage, job: Any, run: Run) -> Iterator[str]:
        """Yield the inputs with other content than when the job ran. Paths do not count: a copy may lie elsewhere."""
        for parameter in stage.of_role(Role.INPUT):
            files = files_of(job.input, parameter.name)
            read = sorted(facts["sha256"] for facts in run.inputs.values() if facts["option"] == parameter.name)
            if parameter.name == stage.shares:
                changed = any(self.digests.of(file) not in read for file in files if file.is_file())
            else:
                changed = all(file.is_file() for file in files) and read != sorted(map(self.digests.of, files))
            if changed:
                yield OTHER_FILES if len(read) != len(files) else f"new input: {parameter.name}"


def files_of(named: Any, parameter: str) -> list[Path]:
    """Return the files that Snakemake's inputs or outputs of a job have under the name of a parameter."""
    given = named.get(parameter) or []
    return [Path(str(file)) for file in ([given] if isinstance(given, str) else given)]


def recorded_fingerprint(run: Run, stage: Stage) -> dict[str, Any]:
    """Return the fingerprint of a job when it ran, from its record."""
    return {
        "code": code_hash(run.code),
        "settings": without_paths(stage.result_settings(run.settings), run.files),
        "values": without_paths(
            {name: value for name, value in run.values.items() if name not in stage.execution_only}, run.files
        ),
        "files": run.files,
        "names": run.names,
    }


def let_records_decide(workflow: Any, results: Path) -> None:
    """Make Snakemake ask the run records which jobs are stale. Digests are cached in the folder ``results``.

    Snakemake has no interface for that. Three places of Snakemake 9 are replaced for rules that run a stage: the object
    that says whether anything of a job has changed, the oldest time of its outputs, with which the times of its inputs
    are compared, and the text of the reason.
    """
    import snakemake.dag
    import snakemake.jobs
    import snakemake.workflow

    if not workflow.is_main_process:
        return
    jobs = RecordedJobs(FileDigests(results / FILE_DIGESTS))
    atexit.register(jobs.digests.save)
    oldest = snakemake.jobs.Job.output_mintime.fget

    async def output_mintime(job: Any) -> Any:
        return await oldest(job) if rule_stage(job.rule) is None else None

    class Persistence(snakemake.workflow.FilePersistence):
        def has_metadata(self, job: Any) -> Any:
            return rule_stage(job.rule) is not None or super().has_metadata(job)

        def has_outdated_metadata(self, job: Any) -> Any:
            return rule_stage(job.rule) is None and super().has_outdated_metadata(job)

        def params_changed(self, job: Any, file: Any = None) -> Any:
            return super().params_changed(job, file) if rule_stage(job.rule) is None else jobs.changes(job)

        def _input_changed(self, job: Any, file: Any = None) -> Any:
            return rule_stage(job.rule) is None and super()._input_changed(job, file)

        def _code_changed(self, job: Any, file: Any = None) -> Any:
            return rule_stage(job.rule) is None and super()._code_changed(job, file)

        def _software_stack_changed(self, job: Any, file: Any = None) -> Any:
            return rule_stage(job.rule) is None and super()._software_stack_changed(job, file)

        async def incomplete(self, job: Any) -> Any:
            return await super().incomplete(job) if rule_stage(job.rule) is None else []

    class Reason(snakemake.jobs.Reason):
        def __str__(self) -> str:
            return str(super().__str__()).replace("Params have changed since last execution", "Run record")

        def get_names(self) -> Iterator[str]:
            names = super().get_names()
            return (name.replace("params have changed since last execution", "stale by run record") for name in names)

    snakemake.jobs.Job.output_mintime = property(output_mintime)
    snakemake.dag.Reason = Reason
    snakemake.workflow.FilePersistence = Persistence
