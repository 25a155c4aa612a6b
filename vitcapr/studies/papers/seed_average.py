"""Seed averages: one table row for the trainings of a system that differ only in their seed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vitcapr.studies.papers.side_by_side import BuildRow, ScoreRange

GroupKey = tuple[str, str, str, str, str]


def seed_average(builds: Sequence[BuildRow], systems: Mapping[str, str]) -> list[BuildRow]:
    """The rows with one for each system of several trainings: the means, with a standard deviation each way.

    It stands where the first of them stood. A score that one of them lacks is left out.

    Args:
        systems: of which system a model is a training, by the model's name; others are left as they are.
    """
    groups: dict[GroupKey, list[BuildRow]] = {}
    for row in builds:
        place = row.experiment, row.dataset, row.split, systems.get(row.key, row.key), row.variant
        groups.setdefault(place, []).append(row)
    merged = []
    for (*_, key, variant), rows in groups.items():
        if len(rows) == 1:
            merged.append(replace(rows[0], key=key))
            continue
        shared = [name for name in rows[0].scores if all(name in row.scores for row in rows)]
        scores = {name: _mean([row.scores[name].value for row in rows]) for name in shared}
        spread = f"mean of {len(rows)} seeds, one standard deviation each way"
        told = {
            name: _without_interval(rows[0].protocols[name], spread) for name in shared if name in rows[0].protocols
        }
        merged.append(
            replace(rows[0], key=key, scores=scores, protocols=told, variant=f", mean of {len(rows)} seeds{variant}")
        )
    return merged


def _without_interval(protocol: str, instead: str) -> str:
    """The protocol without its part ``ci:``, and ``instead`` at its end."""
    return "|".join([*(part for part in protocol.split("|") if not part.startswith("ci:")), instead])


def _mean(values: Sequence[float]) -> ScoreRange:
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    return ScoreRange(mean, mean - spread, mean + spread)
