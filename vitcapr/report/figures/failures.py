"""Random selection of retrieval failures with a seed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.scores import Ranks


@dataclass(frozen=True)
class Failure:
    """A query whose first match is wrong. Positions are those of the embeddings.

    Attributes:
        query: position of the image or of the caption asked with.
        wrong, true: positions of the nearest wrong and of the nearest true match.
        wrong_cosine, true_cosine: of the query with either.
        rank: of the true match; at least 2.
    """

    query: int
    wrong: int
    true: int
    wrong_cosine: float
    true_cosine: float
    rank: int


def image_failures(embedded: Embeddings, ranks: Ranks, count: int, seed: int) -> list[Failure]:
    """``count`` random images whose first match is a negative, in their order; all if there are fewer."""
    return [
        _failure(image, embedded.captions @ embedded.images[image], embedded.caption_image == image, ranks.i2t)
        for image in _draw(ranks.i2t, count, seed)
    ]


def caption_failures(embedded: Embeddings, ranks: Ranks, count: int, seed: int) -> list[Failure]:
    """``count`` random captions whose first match is a negative, in their order; all if there are fewer."""
    positions = np.arange(len(embedded.images))
    return [
        _failure(
            caption,
            embedded.images @ embedded.captions[caption],
            positions == embedded.caption_image[caption],
            ranks.t2i,
        )
        for caption in _draw(ranks.t2i, count, seed)
    ]


def _draw(ranks: NDArray[np.integer], count: int, seed: int) -> list[int]:
    failed = np.flatnonzero(ranks > 1)
    return sorted(int(query) for query in np.random.default_rng(seed).permutation(failed)[:count])


def _failure(query: int, scores: NDArray[np.float32], own: NDArray[np.bool_], ranks: NDArray[np.integer]) -> Failure:
    wrong, true = (int(np.where(kept, scores, -np.inf).argmax()) for kept in (~own, own))
    return Failure(query, wrong, true, float(scores[wrong]), float(scores[true]), int(ranks[query]))
