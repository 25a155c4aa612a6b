"""The history of an experiment, ``history.jsonl``: the scores of every run, its cost, and the keys that it changed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pydantic import TypeAdapter

from vitcapr.errors import UserError
from vitcapr.experiment.lineage import leaves
from vitcapr.files import read_text, sha256_file, write_text
from vitcapr.formats.records import reading
from vitcapr.formats.tables import NOTHING, Cell, Table, row
from vitcapr.metrics.caption_metric import ORACLE
from vitcapr.metrics.labels import COLUMNS
from vitcapr.metrics.system_comparison import Scored, compare_systems, read_scored
from vitcapr.pipeline.result_cache import open_result_cache
from vitcapr.pipeline.run_records import Run
from vitcapr.progress import format_seconds

HISTORY = "history.jsonl"


@dataclass(frozen=True)
class Entry:
    """One finished run.

    Attributes:
        time: in UTC.
        code: version and commit.
        settings: the configuration of the experiment.
        data: SHA-256 of the manifest.
        scores: a row for each score of each split: split, system, metric, value, low, high. Oracles are left out.
        cost: the jobs computed since the entry before, and their seconds.
        scored: keys of the result cache by system: the scores of its captions, by image, on the page's split.
        changes: the keys that differ from the entry before, with both values.
        paired: system -> metric -> difference from the entry before, and the bounds of its paired 95 % interval.
    """

    time: str
    code: str
    settings: dict[str, Any]
    data: str
    scores: list[dict[str, Any]]
    cost: dict[str, float]
    scored: dict[str, str]
    changes: list[str]
    paired: dict[str, dict[str, list[float]]]


class Change(NamedTuple):
    """A main score of a system that differs from the run before; ``paired`` is its difference with bounds, if known."""

    system: str
    metric: str
    before: float
    after: float
    paired: Sequence[float]

    def __str__(self) -> str:
        column = COLUMNS[self.metric]
        pair = f" (paired {column.difference(*self.paired).shown})" if self.paired else ""
        return f"{self.system}: {column.label} {self.scores}{pair}"

    @property
    def scores(self) -> str:
        before, after = (COLUMNS[self.metric].exact(value).text for value in (self.before, self.after))
        return f"{before} → {after}"


def read_history(folder: Path) -> list[Entry]:
    """Return the runs of an experiment, the oldest first; none without a history."""
    path = folder / HISTORY
    if not path.exists():
        return []
    with reading(path, "a history of runs", "correct it, or move it to another folder"):
        return [TypeAdapter(Entry).validate_json(line) for line in read_text(path).splitlines()]


def record_run(
    folder: Path,
    summary: pd.DataFrame,
    split: str,
    manifest: Path,
    jobs: Sequence[Run],
    settings: Mapping[str, Any],
    code: str,
    resampling: Mapping[str, int],
) -> list[Entry]:
    """Append a run to the history of its experiment, unless scores, settings and data are those of the last entry.

    Args:
        jobs: behind the scores.
        resampling: bootstrap samples and seed.

    Returns:
        All runs, the oldest first.
    """
    entries = read_history(folder)
    systems = summary["model"].where(summary["decoding"] == "", summary["model"] + ", " + summary["decoding"])
    oracles = systems[summary["protocol"].str.startswith(ORACLE)]  # Only some scores of an oracle are marked.
    rows = summary[["split", "metric", "value", "low", "high"]].assign(system=systems)[~systems.isin(oracles)]
    scores = json.loads(rows.to_json(orient="records", double_precision=15))
    last, data = entries[-1] if entries else None, sha256_file(manifest)
    if last is not None and (last.scores, last.settings, last.data) == (scores, settings, data):
        return entries
    new = [job for job in jobs if last is None or job.time > last.time]
    computed = [job for job in new if not (job.result_cache and job.result_cache["restored"])]
    scored = {
        f"{job.values['model']}, {job.values['decoding']}": job.result_cache["key"]
        for job in jobs
        if job.stage == "score" and job.result_cache and job.values["split"] == split
    }
    scored = {system: key for system, key in scored.items() if system in set(rows["system"])}
    entry = Entry(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        code=code,
        settings=dict(settings),
        data=data,
        scores=scores,
        cost={"jobs": len(computed), "seconds": round(sum(job.made["seconds"] for job in computed), 1)},
        scored=scored,
        changes=[] if last is None else list(_changes(last, settings, data, code)),
        paired={} if last is None else dict(_paired(folder, last.scored, scored, resampling)),
    )
    entries.append(entry)
    lines = (json.dumps(asdict(one), ensure_ascii=False) for one in entries)
    write_text(folder / HISTORY, "".join(f"{line}\n" for line in lines))
    return entries


def _changes(last: Entry, settings: Mapping[str, Any], data: str, code: str) -> Iterator[str]:
    before, now = (dict(leaves(each)) for each in (last.settings, settings))
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key):
            yield f"{key} {before.get(key, 'not there')} → {now.get(key, 'not there')}"
    if last.data != data:
        yield "other data"
    if last.code != code:
        yield f"{last.code} → {code}"


def _paired(
    folder: Path, before: Mapping[str, str], after: Mapping[str, str], resampling: Mapping[str, int]
) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Yield the paired differences of each system whose captions of both runs are in the result cache."""
    cache = open_result_cache(folder.parent)
    for system in after:
        if cache is None or before.get(system) in (None, after[system]):
            continue
        entries = [cache.find(keys[system]) for keys in (before, after)]
        try:
            both = [read_scored(one.path / "metrics", one.path / "per_image") for one in entries if one is not None]
            if len(both) == 2:
                samples, seed = resampling["samples"], resampling["seed"]
                rows = compare_systems(_main(both[0]), _main(both[1]), samples, seed)["metrics"]
                tested = {m: [one[k] for k in ("difference", "low", "high")] for m, one in rows.items()}
                yield system, {m: values for m, values in tested.items() if None not in values}
        except UserError:  # Scored on other images or references: there are no pairs.
            continue


def _main(system: Scored) -> Scored:
    """Leave out the measures of scores in which systems are not tested."""
    return system._replace(measures={name: each for name, each in system.measures.items() if COLUMNS[name].main})


def last_changes(entries: Sequence[Entry], split: str) -> list[Change]:
    """Return the main scores that differ between the last two runs, those with a pair first, then by size."""
    if len(entries) < 2:
        return []
    before, after = (main_scores(entry, split) for entry in entries[-2:])
    changes = [
        Change(system, metric, before[system, metric], value, entries[-1].paired.get(system, {}).get(metric, []))
        for (system, metric), value in after.items()
        if (system, metric) in before and before[system, metric] != value
    ]
    return sorted(changes, key=lambda one: (not one.paired, -abs(one.after - one.before)))


def main_scores(entry: Entry, split: str) -> dict[tuple[str, str], float]:
    """Return the main scores of a run on a split, by system and metric."""
    return {(one["system"], one["metric"]): one["value"] for one in _main_rows(entry, split)}


def best_scores(entry: Entry, split: str) -> dict[str, dict[str, Any]]:
    """Return the highest row of each main score of a run on a split, by metric."""
    best: dict[str, dict[str, Any]] = {}
    for one in _main_rows(entry, split):
        best[one["metric"]] = max(best.get(one["metric"], one), one, key=lambda each: each["value"])
    return {name: best[name] for name in COLUMNS if name in best}


def _main_rows(entry: Entry, split: str) -> list[dict[str, Any]]:
    rows = [one for one in entry.scores if one["split"] == split and one["value"] is not None]
    return [one for one in rows if one["metric"] in COLUMNS and COLUMNS[one["metric"]].main]


def changed(entries: Sequence[Entry], number: int) -> str:
    """Return the keys that a run changed."""
    return "; ".join(entries[number].changes) or ("nothing changed" if number else "first run")


def history_table(entries: Sequence[Entry], split: str) -> Table:
    """Lay out the runs, the newest first: the best scores and the cost."""
    scores = [best_scores(entry, split) for entry in entries]
    columns = [column for name, column in COLUMNS.items() if any(name in best for best in scores)]
    rows = [
        row(
            entry.time[:16].replace("T", " "),
            *(column.cell(best[column.name]) if column.name in best else Cell(NOTHING) for column in columns),
            f"{entry.cost['jobs']:.0f}",
            format_seconds(entry.cost["seconds"]),
        )
        for entry, best in zip(entries, scores, strict=True)
    ]
    return Table(
        f"Runs, the newest first: the highest score of the {split} split",
        ("finished, UTC", *(column.label for column in columns), "jobs", "time"),
        tuple(rows[::-1]),
        align=f"l{'r' * (len(columns) + 2)}",
        caption="Jobs and time: those computed since the run before, without figures. A run that changes no score, no "
        "setting and no data adds no row.",
    )
