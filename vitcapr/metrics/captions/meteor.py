"""METEOR 1.5 for English, computed from the counts of its jar, and its paraphrases.

Reading METEOR's whole table of paraphrases (62 MB, 5.6 million entries) is three quarters of the work of scoring 500
captions. METEOR comes with a program that keeps the entries one side of which occurs in given references. A match needs
the one side in the reference and the other in the caption, so the scores are the same. (The program reads references
without their punctuation; no entry has a token of punctuation.)
"""

import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, sha256_bytes, sha256_file
from vitcapr.formats.scores import PARAPHRASES_CARD as CARD
from vitcapr.formats.scores import PARAPHRASES_TABLE as TABLE
from vitcapr.formats.scores import ParaphrasesCard
from vitcapr.metrics.bootstrap import Array, Measure
from vitcapr.metrics.caption_metric import CaptionMetric, TokenisedCaptions
from vitcapr.metrics.java import filter_paraphrases, meteor_statistics

_LINES = 3
"""Lines of an entry in the table of paraphrases."""


def meteor(captions: TokenisedCaptions) -> Measure:
    """METEOR 1.5 of captions."""
    folder = captions.paraphrases
    table = None if folder is None else find_paraphrases(folder, captions.references)
    return measure_of(meteor_statistics(captions.named, captions.tokenised_references, table))


def measure_of(counts: Sequence[Sequence[float]]) -> Measure:
    """METEOR 1.5 from what its jar counted in each segment, (N, 23)."""
    statistics = np.array(counts, dtype=np.float64)
    length, other_length, chunks, matched, other_matched = statistics[:, [0, 1, 20, 21, 22]].T
    # A caption that is a reference word for word is one chunk, which METEOR does not count.
    statistics[(matched == length) & (other_matched == other_length) & (chunks == 1), 20] = 0
    return Measure(statistics, meteor_of)


def meteor_of(sums: Array) -> Array:
    """Return the score from METEOR's statistics (..., 23) with its parameters for English (task ``rank``).

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
        matches = delta * content.sum(axis=-1) + (1 - delta) * of_function.sum(axis=-1)
        return _divide(matches, most)

    precision = weighed(content_matches, function_matches, length, function)
    recall = weighed(other_content, other_functions, other_length, other_function)
    f_mean = _divide(precision * recall, alpha * precision + (1 - alpha) * recall)
    fragmentation = _divide(chunks, (matched + other_matched) / 2)
    return np.asarray(f_mean * (1 - gamma * fragmentation**beta))


def _divide(numerator: Array, denominator: Array) -> Array:
    """Return the ratio, or zero if the denominator is zero, as in METEOR."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=denominator != 0)


def write_paraphrases(directory: Path, references: Mapping[str, Sequence[str]]) -> int:
    """Write METEOR's paraphrases of ``references`` (tokenised, by image), and a card of what they are of.

    Returns:
        The number of entries kept.

    Raises:
        UserError: METEOR's program failed or left half a table.
    """
    table = directory / TABLE
    with atomic_path(table) as temporary:
        filter_paraphrases([text for texts in references.values() for text in texts], temporary)
        # Java's writer keeps a full disk to itself.
        try:
            with gzip.open(temporary) as lines:
                count, rest = divmod(sum(1 for _ in lines), _LINES)
        except (EOFError, OSError, zlib.error):
            rest = 1
        if rest:
            raise UserError("METEOR's program wrote half a table", where=table, remedy="is the disk full?")
    ParaphrasesCard(count, _digest(references), sha256_file(table)).write(directory / CARD)
    return count


def find_paraphrases(directory: Path, references: Mapping[str, Sequence[str]]) -> Path:
    """Return the table in ``directory``, which must have been made of these references.

    Raises:
        UserError: it is another file, or of other references, or the table is not the one that was written with it.
    """
    card = ParaphrasesCard.read(directory / CARD)
    if card.references != _digest(references):
        raise UserError(
            "the paraphrases are of other references",
            where=directory / CARD,
            remedy="write them again (vitcapr stage paraphrases) from the same manifest, split and language",
        )
    table = directory / TABLE
    if not table.is_file() or card.table != sha256_file(table):
        raise UserError("the paraphrases are missing or damaged", where=table, remedy="delete them and run again")
    return table


def _digest(references: Mapping[str, Sequence[str]]) -> str:
    lines = "".join(f"{text}\n" for texts in references.values() for text in texts)
    return sha256_bytes(lines.encode("utf-8"))


METRIC = CaptionMetric(
    measure=lambda captions: {"meteor": meteor(captions)},
    protocol="meteor:1.5",
    corpus={"meteor": ("meteor_statistics", meteor_of)},
)
