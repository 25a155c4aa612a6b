"""Reranking of the n best captions of an image by their likelihood and their similarity to the image.

    score = (1 - weight) * (log_prob - alpha * blind) / (words + 1) ** length_penalty + weight * cosine(image, caption)

The first term is the score of a beam search with that length penalty. ``blind`` is the log-likelihood of the caption
under a language model that sees no image: with it, the likelihood is P(t | image) / P(t) ** alpha (Lin et al. 2023,
arXiv 2306.01879). The terms have different scales, so a weight means something only for the captioner, the length
penalty and the retriever that it was chosen for.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.formats.captions import DECIMALS, DecodedCaption, read_captions, write_captions

Float64s = NDArray[np.float64]


def read_n_best(path: Path, image_ids: Sequence[str]) -> list[DecodedCaption]:
    """Return the candidates of each of ``image_ids``, in their order.

    Raises:
        UserError: the file holds something else, one caption an image, or the captions of other images.
    """
    n_bests = read_captions(path)
    if n_bests.keys() != set(image_ids):
        odd = min(n_bests.keys() ^ set(image_ids))
        what, where = "these are not the captions of the split", f"{path}, image {odd}"
        raise UserError(what, where=where, remedy="give those of this split")
    if max(len(n_best.candidates) for n_best in n_bests.values()) < 2:
        raise UserError(
            "every image has one candidate, so there is nothing to reorder",
            where=path,
            remedy="raise the decoding's n_best, at most to its beam_size",
        )
    return [n_bests[image_id] for image_id in image_ids]


class Terms:
    """Both terms of the score, for B images with up to n candidates.

    Args:
        n_bests: the candidates of each image.
        cosines: those of each image's candidates.
        length_penalty: the exponent of the length, the end token counted.
        blind: their log-likelihoods under a language model that sees no image.
    """

    def __init__(
        self,
        n_bests: Sequence[DecodedCaption],
        cosines: Sequence[Float64s],
        length_penalty: float,
        blind: Sequence[Float64s] | None = None,
        alpha: float = 0.0,
    ) -> None:
        shape = (len(n_bests), max(len(n_best.candidates) for n_best in n_bests))
        self._log_probs, self._cosines, self._exists = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)
        for row, (n_best, of_image) in enumerate(zip(n_bests, cosines, strict=True)):
            count = len(n_best.candidates)
            log_probs = np.array([candidate.log_prob for candidate in n_best.candidates])
            if blind is not None:
                log_probs = log_probs - alpha * blind[row]
            lengths = [float(len(candidate.token_log_probs)) ** length_penalty for candidate in n_best.candidates]
            self._log_probs[row, :count] = log_probs / lengths
            self._cosines[row, :count] = of_image
            self._exists[row, :count] = True

    def scores(self, weight: float) -> Float64s:
        """(B, n), minus infinity where an image has fewer candidates."""
        mixed = (1 - weight) * self._log_probs + weight * self._cosines
        return np.where(self._exists, mixed.round(DECIMALS), -np.inf)

    def best(self, weight: float) -> NDArray[np.intp]:
        """(B,): which candidate comes first; of equal ones the one that was ahead."""
        first: NDArray[np.intp] = np.argmax(self.scores(weight), axis=1)
        return first


def choose_weight(
    terms: Terms,
    score_of: Callable[[NDArray[np.intp]], float],
    steps: int,
    tolerance: float = 0.0,
) -> tuple[float, list[dict[str, float]]]:
    """Return the weight whose choice of candidates scores best; of equal ones the smallest.

    Args:
        score_of: CIDEr of the split for a choice of one candidate an image.
        steps: ``steps + 1`` weights from 0 to 1 are tried.
        tolerance: if above 0, the largest weight is chosen whose score is at most so far below the best.

    Returns:
        The weight, and the curve: ``weight``, ``cider``, and ``changed``, the share of images whose caption is not the
        first one of the decoding.
    """
    curve = []
    for weight in np.linspace(0, 1, steps + 1).round(DECIMALS).tolist():
        chosen = terms.best(weight)
        changed = float(np.mean(chosen != 0))
        values = {"weight": weight, "cider": score_of(chosen), "changed": changed}
        curve.append({key: round(value, DECIMALS) for key, value in values.items()})
    # max keeps the first of equals.
    best = max(curve, key=lambda point: point["cider"])
    if tolerance:
        best = [point for point in curve if point["cider"] >= round(best["cider"] - tolerance, DECIMALS)][-1]
    return best["weight"], curve


def write_reordered(
    path: Path,
    n_bests: Sequence[DecodedCaption],
    scores: Sequence[Float64s],
    *,
    of_candidates: Sequence[dict[str, Float64s]] | None = None,
    oracle: str | None = None,
) -> None:
    """Write ``captions.json`` as decoding does, candidates in descending order of the new scores.

    Args:
        scores: of each image's candidates; of equal ones the one that was ahead stays ahead.
        of_candidates: more numbers for each image's candidates, by name.
        oracle: as in :func:`write_captions`.
    """
    captioned = []
    for number, (n_best, values) in enumerate(zip(n_bests, scores, strict=True)):
        extra = {} if of_candidates is None else of_candidates[number]
        described = [
            candidate.model_copy(
                update={"score": round(float(values[rank]), DECIMALS)}
                | {name: float(column[rank]) for name, column in extra.items()}
            )
            for rank, candidate in enumerate(n_best.candidates)
        ]
        captioned.append((n_best.image_id, sorted(described, key=lambda candidate: -candidate.score)))
    write_captions(path, captioned, oracle=oracle)
