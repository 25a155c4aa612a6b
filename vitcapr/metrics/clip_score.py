"""Scores of captions by the vectors of an encoder: CLIPScore and RefCLIPScore."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from vitcapr.metrics.bootstrap import Measure, mean_measure

F = TypeVar("F", bound=np.floating[Any])

WEIGHT = 2.5
"""w of Hessel et al. 2021, section 3."""
PROMPT = "A photo depicts "
"""Precedes every caption and reference of CLIPScore, as in the paper."""


def clip_scores(
    images: np.ndarray, captions: np.ndarray, references: np.ndarray, image_of: np.ndarray
) -> dict[str, Measure]:
    """CLIPScore and RefCLIPScore (Hessel et al. 2021, "CLIPScore", section 3).

    CLIP-S(c, v) = 2.5 max(cos(c, v), 0). RefCLIP-S is the harmonic mean of CLIP-S and the largest max(cos(c, r), 0)
    over the references r.

    Args:
        images: (N, D) the vectors of the images.
        captions: (N, D) those of their captions, in the same order.
        references: (M, D) those of all references.
        image_of: (M,) which of the N images each reference belongs to; each has one or more.
    """
    images, captions, references = (unit(each.astype(np.float64)) for each in (images, captions, references))
    of_image = WEIGHT * np.maximum(_cosines(captions, images), 0)
    closest = np.zeros(len(captions))
    np.maximum.at(closest, image_of, _cosines(captions[image_of], references))
    total = of_image + closest
    both = np.divide(2 * of_image * closest, total, out=np.zeros_like(total), where=total > 0)
    return {"clip_score": mean_measure(of_image), "ref_clip_score": mean_measure(both)}


def unit(rows: npt.NDArray[F]) -> npt.NDArray[F]:
    """(n, D): the rows divided by their lengths; a row of zeros stays."""
    scaled: npt.NDArray[F] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return scaled


def _cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) the cosine of each pair of rows of length 1."""
    return np.asarray(np.einsum("nd,nd->n", a, b))
