"""BERTScore: captions and references compared token by token, by the vectors that an encoder gives them in context."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np

from vitcapr.metrics.bootstrap import Measure, mean_measure
from vitcapr.metrics.similarity import unit

_BLOCK = 64
"""Images whose vectors are in memory at a time."""


class Tokens(NamedTuple):
    """A sentence of T tokens.

    Attributes:
        vectors: (T, D).
        weights: (T,) not negative; a token of weight 0 can be matched and does not count itself.
    """

    vectors: np.ndarray
    weights: np.ndarray


def greedy_match(caption: Tokens, reference: Tokens) -> tuple[float, float, float]:
    """Precision, recall and F1 of a caption by one reference (Zhang et al. 2020, "BERTScore", section 3).

    R is the weighted mean over the reference's tokens of the greatest cosine with a token of the caption, P the same
    over the caption's tokens, and F1 their harmonic mean. All are 0 if a sentence has no token that counts.
    """
    cosines = unit(caption.vectors) @ unit(reference.vectors).T
    own, other = caption.weights.sum(), reference.weights.sum()
    if own <= 0 or other <= 0:
        return 0.0, 0.0, 0.0
    precision = float(cosines.max(axis=1) @ caption.weights / own)
    recall = float(cosines.max(axis=0) @ reference.weights / other)
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total > 0 else 0.0


def inverse_document_frequencies(references: Sequence[Sequence[int]]) -> dict[int, float]:
    """log((M + 1) / (n + 1)) of each token that is in n of the M references (section 3, smoothed)."""
    found = Counter(token for reference in references for token in set(reference))
    return {token: math.log((len(references) + 1) / (count + 1)) for token, count in found.items()}


def bert_score(
    captions: Sequence[Sequence[int]],
    references: Sequence[Sequence[int]],
    image_of: np.ndarray,
    vectors: Callable[[Sequence[Sequence[int]]], Sequence[np.ndarray]],
    special: Collection[int],
    idf: bool,
) -> dict[str, Measure]:
    """Precision, recall and F1 of captions: of each, the greatest over the references of the image.

    Args:
        captions: the tokens of N captions.
        references: those of M references.
        image_of: (M,) which of the N captions each reference belongs to; each has one or more.
        vectors: gives the vectors (T, D) of the tokens of each sentence.
        special: tokens that do not count, such as [CLS] and [SEP].
        idf: weigh tokens by the inverse document frequencies in the references; False: all the same.
    """
    frequencies = inverse_document_frequencies(references) if idf else {}
    unseen = math.log(len(references) + 1) if idf else 1.0

    def weights(tokens: Sequence[int]) -> np.ndarray:
        return np.array([0.0 if token in special else frequencies.get(token, unseen) for token in tokens])

    own: list[list[int]] = [[] for _ in captions]
    for row, image in enumerate(image_of.tolist()):
        own[image].append(row)
    scores = np.empty((len(captions), 3))
    for first in range(0, len(captions), _BLOCK):
        images = range(first, min(first + _BLOCK, len(captions)))
        sentences = [captions[image] for image in images]
        sentences += [references[row] for image in images for row in own[image]]
        read = (Tokens(*each) for each in zip(vectors(sentences), map(weights, sentences), strict=True))
        written = [next(read) for _ in images]
        for image, caption in zip(images, written, strict=True):
            scores[image] = np.max([greedy_match(caption, next(read)) for _ in own[image]], axis=0)
    names = ("bert_score_precision", "bert_score_recall", "bert_score_f1")
    return {name: mean_measure(column) for name, column in zip(names, scores.T, strict=True)}
