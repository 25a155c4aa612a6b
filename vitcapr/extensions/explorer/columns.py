"""The numbers that the explorer filters and sorts by: one for each image in each column."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitcapr.extensions.explorer.results import Numbers, Space, System
from vitcapr.extensions.explorer.spaces import Written
from vitcapr.formats.captions import DecodedCaption
from vitcapr.metrics.labels import COLUMNS, GROUPS, ScoreColumn
from vitcapr.metrics.scoring import caption_metrics

Floats = NDArray[np.float64]
_FINER = 1
"""Decimals more than in a table."""


@dataclass(frozen=True, eq=False)
class Column:
    """Numbers (N,) of the images, NaN where there is none.

    Attributes:
        name: stays the same from call to call: it is part of links.
        group: the system, the retrieval model or the audit.
        better: ``high``, ``low``, or empty where neither is better.
        places: decimals.
        mean: ``value`` where a score is the mean of these numbers, ``rank`` where it is the share of rank 1.
    """

    name: str
    label: str
    group: str
    better: str
    values: Floats
    places: int
    mean: str = ""


def system_columns(name: str, system: System, base: System | None, numbers: Mapping[str, int]) -> Iterator[Column]:
    """Yield the columns of a system: scores, a changed caption, wrong claims, probability.

    A reranking changes a caption if it prefers another one than its decoding.
    """

    def per_caption(value: Callable[[str, DecodedCaption], float]) -> Floats:
        return _spread(numbers, {image: value(image, one) for image, one in system.captions.items()})

    def column(key: str, label: str, better: str, values: Floats, places: int = 0, mean: str = "") -> Column:
        return Column(f"{name}:{key}", label, name, better, values, places, mean)

    per_image = pd.DataFrame() if system.per_image is None else system.per_image.select_dtypes("number")
    corpus = {score for metric in caption_metrics().values() for score in metric.corpus}
    for key in filter(COLUMNS.__contains__, per_image.columns):
        known, values = COLUMNS[key], _spread(numbers, per_image[key].to_dict())
        better = "high" if known.group is GROUPS["references"] else ""
        mean = "value" if known.group is GROUPS["references"] and key not in corpus else ""
        yield column(key, known.label, better, values * known.scale, _places(known, values), mean)
    if base:
        before_of = base.captions
        changed = per_caption(lambda image, one: float(image in before_of and one.tokens != before_of[image].tokens))
        yield column("changed", "changed by reranking (1: yes)", "", changed)
    if system.claims:
        wrong = {image: [claim.kind for claim in claims if not claim.right] for image, claims in system.claims.items()}
        for kind in ("", *dict.fromkeys(claim.kind for claims in system.claims.values() for claim in claims)):
            counts = {image: float(len(each) if not kind else each.count(kind)) for image, each in wrong.items()}
            label = f"wrong claims: {'colours' if kind == 'colors' else kind}" if kind else "wrong claims"
            yield column(
                f"wrong_{kind or 'claims'}", label, "low", _spread(numbers, counts), mean="" if kind else "value"
            )
    per_word = per_caption(lambda _, one: one.candidates[0].log_prob / len(one.candidates[0].token_log_probs))
    yield column("log_prob", "log-probability per word", "high", per_word, 2)


def space_columns(name: str, space: Space, count: int, images: Numbers) -> Iterator[Column]:
    """Yield the columns of a retrieval model: ranks of the true matches of each of ``count`` images."""
    embedded, ranks = space.embedded, space.ranks
    i2t, worst = np.full(count, np.nan), np.full(count, np.nan)
    i2t[images] = ranks.i2t
    owners = images[embedded.caption_image]
    worst[owners] = 0
    np.maximum.at(worst, owners, ranks.t2i)
    yield Column(f"{name}:i2t", "rank of the true caption for the image", name, "low", i2t, 0, "rank")
    yield Column(f"{name}:t2i", "rank of the image for its worst caption", name, "low", worst, 0)


def written_column(system: str, space: str, written: Written, count: int, images: Numbers) -> Column:
    """Return the rank of each image for the caption that a system wrote of it."""
    ranks = np.full(count, np.nan)
    ranks[images] = written.ranks
    return Column(f"{system}:rank@{space}", f"rank of the image for this caption in {space}", system, "low", ranks, 0)


def audit_columns(name: str, audit: pd.DataFrame, numbers: Mapping[str, int]) -> Iterator[Column]:
    """Yield the columns of an audit: the largest suspicion among the captions of each image."""
    labels = {"suspicion": "suspicion of the worst reference", "wrong": "probability of a wrong reference"}
    for key, label in labels.items():
        values = _spread(numbers, audit.groupby("image_id")[key].max().to_dict())
        yield Column(f"{name}:{key}", label, name, "low", values, 2)


def _places(score: ScoreColumn, values: Floats) -> int:
    """Return the decimals of a column: none where a score that counts is whole for every image, as words are."""
    counts = score.scale == 1 and np.array_equal(values, np.rint(values), equal_nan=True)
    return 0 if counts else score.places + _FINER


def _spread(numbers: Mapping[str, int], values: Mapping[Any, float]) -> Floats:
    """Return the values in the order of the images; NaN where an image has none."""
    return np.asarray(pd.Series(dict(values), dtype=float).reindex(list(numbers)), np.float64)


def plain(column: Column) -> Sequence[float | int | None]:
    """Return the values for JSON, rounded; None where there is none."""
    return [None if np.isnan(value) else round(value, column.places or None) for value in column.values.tolist()]
