"""Checks that the inputs of a job are unchanged since the jobs wrote them, by the digests in the run records."""

import json
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.pipeline.records import RUNS, Run, read_run, root_of

_OUTPUTS = '"outputs": '
_DECODER = json.JSONDecoder()


def check_as_written(inputs: Mapping[str, Mapping[str, Any]]) -> None:
    """Only a record that names this very path counts, and of several the newest one. A file without one passes.

    Args:
        inputs: path -> ``sha256`` and other facts, as a record holds them.

    Raises:
        UserError: a file has changed since its job wrote it.
    """
    experiments = {root for path in inputs if (root := root_of(path)) is not None}
    makers: dict[str, Run] = {}
    wrote_one = (run for each in experiments for run in _runs_that_wrote(inputs.keys(), Path(each)))
    for run in sorted(wrote_one, key=_when):
        makers.update(dict.fromkeys(run.outputs, run))
    for path, facts in inputs.items():
        maker = makers.get(path)
        if maker is not None and maker.outputs[path]["sha256"] != facts["sha256"]:
            raise UserError(
                f"the file is not as {maker.name} wrote it",
                where=path,
                remedy=f"snakemake --forcerun {path} makes it again; to keep your change, delete {maker.path}",
            )


def _runs_that_wrote(files: Set[str], experiment: Path) -> Iterator[Run]:
    """The readable runs with one of ``files`` among their outputs.

    Every job reads all records of its experiment, so only the outputs of a record are decoded until one of them is
    found among ``files``.
    """
    for path in (experiment / RUNS).rglob("[!.]*.json"):
        try:
            if not files.isdisjoint(_outputs(path.read_text(encoding="utf-8"))):
                yield read_run(path)
        except (OSError, ValueError, UserError):  # A record of another format says nothing about these files.
            continue


def _outputs(record: str) -> list[str]:
    """The output files that the text of a record names.

    Raises:
        ValueError: it is no record.
    """
    return list(_DECODER.raw_decode(record, record.index(_OUTPUTS) + len(_OUTPUTS))[0])


def _when(run: Run) -> str:
    """When the job ran, in UTC: for a result that was restored from the cache, when it was restored."""
    cache = run.facts["result_cache"]
    return (cache["restored"] if cache else None) or run.made["started"]
