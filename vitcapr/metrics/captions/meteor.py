"""METEOR 1.5 for English, computed from the counts of its jar."""

import numpy as np

from vitcapr.metrics import java
from vitcapr.metrics.base import CaptionMetric, TokenisedCaptions
from vitcapr.metrics.bootstrap import Array, Measure
from vitcapr.metrics.java import MeteorResult
from vitcapr.metrics.paraphrases import find_paraphrases


def meteor_by_java(captions: TokenisedCaptions) -> Measure:
    """METEOR of captions, by Java's program."""
    folder = captions.paraphrases
    table = None if folder is None else find_paraphrases(folder, captions.references)
    return meteor(java.meteor(captions.named, captions.reference_words, captions.timeout, paraphrases=table))


def meteor(result: MeteorResult) -> Measure:
    """METEOR 1.5 from what its jar counted in each segment."""
    statistics = np.array(result.statistics, dtype=np.float64)
    length, other_length, chunks, matched, other_matched = statistics[:, [0, 1, 20, 21, 22]].T
    # A caption that is a reference word for word is one chunk, which METEOR does not count.
    statistics[(matched == length) & (other_matched == other_length) & (chunks == 1), 20] = 0
    return Measure(statistics, meteor_of)


def meteor_of(sums: Array) -> Array:
    """The score from METEOR's statistics (..., 23) with its parameters for English (task ``rank``).

    Denkowski and Lavie, Meteor Universal (2014), equations 1 to 5: alpha 0.85, beta 0.20, gamma 0.60,
    delta 0.75, matchers weighed 1.0 (exact), 0.6 (stem), 0.8 (synonym), 0.6 (paraphrase). The statistics are
    words and function words of candidate and reference; for each matcher the content words of the candidate
    and the reference and the function words of both; chunks; matched words of both.
    """
    alpha, beta, gamma, delta = 0.85, 0.20, 0.60, 0.75
    weights = np.array([1.0, 0.6, 0.8, 0.6])
    length, other_length, function, other_function = np.moveaxis(sums[..., :4], -1, 0)
    content_matches, other_content, function_matches, other_functions = np.moveaxis(
        sums[..., 4:20].reshape(*sums.shape[:-1], 4, 4) * weights[:, None], -1, 0
    )
    chunks, matched, other_matched = np.moveaxis(sums[..., 20:], -1, 0)

    def weighed(content: Array, of_function: Array, words: Array, function_words: Array) -> Array:
        most = delta * (words - function_words) + (1 - delta) * function_words
        found = delta * content.sum(axis=-1) + (1 - delta) * of_function.sum(axis=-1)
        return _divide(found, most)

    precision = weighed(content_matches, function_matches, length, function)
    recall = weighed(other_content, other_functions, other_length, other_function)
    f_mean = _divide(precision * recall, alpha * precision + (1 - alpha) * recall)
    fragmentation = _divide(chunks, (matched + other_matched) / 2)
    return np.asarray(f_mean * (1 - gamma * fragmentation**beta))


def _divide(numerator: Array, denominator: Array) -> Array:
    """The ratio, or zero if the denominator is zero, as in METEOR."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=denominator != 0)


METRIC = CaptionMetric(
    measure=lambda captions: {"meteor": meteor_by_java(captions)},
    protocol="meteor:1.5",
    corpus={"meteor": ("meteor_statistics", meteor_of)},
)
