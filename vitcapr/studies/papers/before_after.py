"""The effect of reranking and of self-critical training on every score."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vitcapr.formats.tables import NOTHING, Cell, Table
from vitcapr.metrics.bootstrap import NOT_TESTED
from vitcapr.metrics.labels import in_groups
from vitcapr.report.score_tables import COMPARISON_COLUMNS, comparison_rows
from vitcapr.studies.papers.side_by_side import BuildRow, place

BEAM, RERANKED = "beam", "reranked"
"""Decodings of these names are one before and after reranking, where no comparison of the two is given."""
CROSS_ENTROPY = "_cross_entropy"
"""A captioner whose name is another's with this after it is that one, without its self-critical phase."""


def reranking(comparisons: Sequence[Mapping[str, Any]], builds: Sequence[BuildRow]) -> Table:
    """Two decodings of one captioner. The paper shows two images before and after reranking, but no score."""
    given = [content for content in comparisons if content["before"]["model"] == content["after"]["model"]]
    found = (content for content in _pairs(builds, _rerankings(builds)) if not _is_among(content, given))
    return _table(
        "reranking",
        "Captions before and after reranking",
        [*given, *found],
        "The paper shows the captions of two images of MS COCO before and after (figures 11 to 14) and no score.",
    )


def self_critical(comparisons: Sequence[Mapping[str, Any]], builds: Sequence[BuildRow]) -> Table:
    """Two captioners under one decoding. The paper trains with cross-entropy alone."""
    given = [content for content in comparisons if content["before"]["model"] != content["after"]["model"]]
    found = (content for content in _pairs(builds, _trainings(builds)) if not _is_among(content, given))
    return _table(
        "self_critical",
        "Captions before and after self-critical training",
        [*given, *found],
        "The paper trains with cross-entropy alone.",
    )


def _table(name: str, title: str, comparisons: Sequence[Mapping[str, Any]], of_paper: str) -> Table:
    lines = []
    for content in comparisons:
        where = f"{content['dataset']}, {content['split']}"
        systems = Cell(f"{_named(content['before'])} → {_named(content['after'])} ({where})")
        lines += [(systems, *cells) for cells in comparison_rows(content["metrics"])]
    parts = [
        "Scores times 100, lengths and counts as they are; difference: after - before on the same images, with the "
        "95 % interval by resampling images in pairs and p by exchanging captions image by image; one score a row, "
        "not corrected for their number.",
        of_paper,
    ]
    sides = [content[side]["protocol"] for content in comparisons for side in ("before", "after")]
    protocols = dict.fromkeys([*sides, *(content["protocol"] for content in comparisons)])
    parts.append(f"Protocol: {'; '.join(filter(None, protocols))}." if lines else "This build has no such run here.")
    lines = lines or [(Cell(NOTHING),) * (len(COMPARISON_COLUMNS) + 1)]
    return Table(
        title, ("systems", *COMPARISON_COLUMNS), tuple(lines), align="llrrrrrl", caption=" ".join(parts), name=name
    )


def _rerankings(builds: Sequence[BuildRow]) -> Iterator[tuple[str, BuildRow]]:
    for row in builds:
        model, _, decoding = row.key.partition("/")
        if decoding == RERANKED:
            yield f"{model}/{BEAM}", row


def _trainings(builds: Sequence[BuildRow]) -> Iterator[tuple[str, BuildRow]]:
    for row in builds:
        model, _, decoding = row.key.partition("/")
        if decoding:
            yield f"{model}{CROSS_ENTROPY}/{decoding}", row


def _pairs(builds: Sequence[BuildRow], wanted: Iterator[tuple[str, BuildRow]]) -> Iterator[dict[str, Any]]:
    """Comparisons made of the summary alone: differences without intervals."""
    for key, after in wanted:
        like = replace(after, key=key)
        for before in builds:
            if place(before) != place(like):
                continue
            metrics = {}
            for name in (column.name for column in in_groups("references", "language")):
                if name in before.scores and name in after.scores:
                    values = before.scores[name].value, after.scores[name].value
                    metrics[name] = {
                        "before": values[0],
                        "after": values[1],
                        "difference": values[1] - values[0],
                        **dict.fromkeys(("low", "high", "p_value")),
                        "verdict": NOT_TESTED,
                    }
            yield {
                "dataset": after.dataset,
                "split": after.split,
                "before": _identity(before),
                "after": _identity(after),
                "metrics": metrics,
                "protocol": "",
            }


def _identity(row: BuildRow) -> dict[str, str]:
    model, _, decoding = row.key.partition("/")
    return {"model": model, "decoding": decoding, "protocol": "; ".join(dict.fromkeys(row.protocols.values()))}


def _is_among(content: Mapping[str, Any], given: Sequence[Mapping[str, Any]]) -> bool:
    def key(one: Mapping[str, Any]) -> tuple[str, ...]:
        return one["dataset"], one["split"], _named(one["before"]), _named(one["after"])

    return any(key(content) == key(other) for other in given)


def _named(side: Mapping[str, str]) -> str:
    return "/".join(filter(None, (side["model"], side["decoding"])))
