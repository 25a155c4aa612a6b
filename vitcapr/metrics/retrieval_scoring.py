"""Scores the embeddings of a split for retrieval: the scores, the ranks and the protocol."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.scores import RankFile, Score
from vitcapr.metrics import retrieval
from vitcapr.metrics.bootstrap import interval_protocol, plain_score
from vitcapr.metrics.query_bank import Correction
from vitcapr.metrics.ranks import Truth, rank_matches
from vitcapr.metrics.retrieval_report import pool_protocol, retrieval_scores


class ScoredRetrieval(NamedTuple):
    """Attributes:
    scores: as metrics.json holds them.
    ranks: the retrieval rank of every true match.
    protocol: how the numbers were made; without it they cannot be compared with anyone's.
    """

    scores: dict[str, Score]
    ranks: RankFile
    protocol: str


def score_embeddings(
    embedded: Embeddings,
    correction: Correction | None = None,
    *,
    split: str,
    languages: Sequence[str],
    samples: int,
    seed: int,
    advance: Callable[[int], None],
) -> ScoredRetrieval:
    """The scores of all captions for each image and of all images for each caption.

    Args:
        correction: by a query bank, which the scores then have; the variance is that of the embeddings themselves.
        languages: of the captions, for the protocol.
        samples, seed: of the intervals.
        advance: is told how many scores are done.

    Raises:
        UserError: the query bank does not fit, or an embedding is not finite.
    """
    found = embedded if correction is None else correction.applied(embedded)
    truth = Truth.of(found.caption_image, len(found.images))
    ranked = rank_matches(found.images, found.captions, truth.caption_image, advance)
    folds = retrieval.rank_folds(found.images, found.captions, truth)
    scores = retrieval_scores(ranked, truth, folds, samples, seed)
    for side, vectors in (("image", embedded.images), ("caption", embedded.captions)):
        scores[f"{side}_variance"] = plain_score(retrieval.variance(vectors, side), len(found.images))
    protocol = pool_protocol(truth, split, languages)
    protocol += [] if correction is None else [correction.protocol]
    protocol += interval_protocol(samples, seed)
    ranks = RankFile(ranked, found.image_row, found.caption_row, found.caption_image)
    return ScoredRetrieval(scores, ranks, "|".join(protocol))


def shown_recalls(scores: Mapping[str, Score]) -> Iterator[str]:
    """A line for each direction."""
    for direction, query in (("i2t", "image to text"), ("t2i", "text to image")):
        recalls = " / ".join(f"{100 * _value(scores[f'{direction}_recall_{depth}']):.1f}" for depth in (1, 5, 10))
        median = _value(scores[f"{direction}_median_rank"])
        yield f"{query}: R@1/5/10 {recalls}, median rank {median:g}"


def _value(score: Score) -> float:
    value = score["value"]
    return float("nan") if value is None else value
