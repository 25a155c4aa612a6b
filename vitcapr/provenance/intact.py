"""Checks that the inputs of a job are unchanged since the jobs wrote them, by the digests in the run records."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.provenance.records import RUNS, Run, read_run, root_of


def check_as_written(inputs: Mapping[str, Mapping[str, Any]]) -> None:
    """Only a record that names this very path counts, and of several the newest one. A file without one passes.

    Args:
        inputs: path -> ``sha256`` and other facts, as a record holds them.

    Raises:
        UserError: a file has changed since its job wrote it.
    """
    experiments = {root for path in inputs if (root := root_of(path)) is not None}
    makers: dict[str, Run] = {}
    for run in sorted((run for each in experiments for run in _readable_runs(Path(each))), key=_when):
        makers.update(dict.fromkeys(run.outputs, run))
    for path, facts in inputs.items():
        maker = makers.get(path)
        if maker is not None and maker.outputs[path]["sha256"] != facts["sha256"]:
            raise UserError(
                f"the file is not as {maker.name} wrote it",
                where=path,
                remedy=f"snakemake --forcerun {path} makes it again; to keep your change, delete {maker.path}",
            )


def _readable_runs(experiment: Path) -> Iterator[Run]:
    for path in (experiment / RUNS).rglob("[!.]*.json"):
        try:
            yield read_run(path)
        except UserError:  # A record of another format says nothing about this file.
            continue


def _when(run: Run) -> str:
    """When the job ran, in UTC: for a result that was restored from the cache, when it was restored."""
    cache = run.facts["result_cache"]
    return (cache["restored"] if cache else None) or run.made["started"]
