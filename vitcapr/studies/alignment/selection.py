"""Fits a family on training pairs and lets the validation pairs choose its settings."""

from dataclasses import dataclass
from time import process_time

import numpy as np

from vitcapr.formats.embeddings import Embeddings
from vitcapr.metrics.bootstrap import Measure
from vitcapr.metrics.ranks import Truth, rank_matches
from vitcapr.metrics.retrieval import measures
from vitcapr.studies.alignment.interface import Alignment, Fit, Pairs, Setting
from vitcapr.training.recall import recalls


@dataclass(frozen=True)
class Chosen:
    """Attributes:
    settings: those that the validation pairs chose.
    validation_rsum: the sum of the six recalls on the validation pairs, 0 to 600.
    cpu_seconds: processor time of all fits and of the choice among them.
    """

    alignment: Alignment
    settings: dict[str, Setting]
    validation_rsum: float
    cpu_seconds: float


def choose(fit: Fit, train: Pairs, validation: Pairs, seed: int) -> Chosen:
    """The candidate with the largest sum of recalls on the validation pairs, of equal ones the first."""
    start = process_time()
    best: tuple[float, dict[str, Setting], Alignment] | None = None
    for settings, alignment in fit(train, validation, seed):
        rsum = _validation_rsum(alignment, validation)
        if best is None or rsum > best[0]:
            best = rsum, settings, alignment
    if best is None:
        raise ValueError("the family has no candidate")
    rsum, settings, alignment = best
    return Chosen(alignment, settings, rsum, process_time() - start)


def measures_of(found: Embeddings) -> dict[str, Measure]:
    """The retrieval scores of embeddings, whose dot products are the scores."""
    truth = Truth.of(found.caption_image, len(found.images))
    return measures(rank_matches(found.images, found.captions, truth.caption_image), truth)


def embedded(alignment: Alignment, pairs: Pairs) -> Embeddings:
    """The pairs as points of the shared space; the rows are those of ``pairs``."""
    rows = np.arange(len(pairs.images), dtype=np.int32), np.arange(len(pairs.texts), dtype=np.int32)
    owner = pairs.caption_image.astype(np.int32)
    return Embeddings(alignment.images(pairs.images), alignment.texts(pairs.texts), *rows, owner)


def _validation_rsum(alignment: Alignment, pairs: Pairs) -> float:
    points = alignment.images(pairs.images), alignment.texts(pairs.texts)
    return recalls(*points, pairs.caption_image)["validation_rsum"]
