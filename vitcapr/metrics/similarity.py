"""Scores of captions by the vectors of an encoder: CLIPScore, RefCLIPScore and the similarity of sentences."""

import numpy as np

from vitcapr.metrics.bootstrap import Measure, mean_measure

WEIGHT = 2.5
"""w of Hessel et al. 2021, section 3."""


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
    images, captions, references = (unit(vectors) for vectors in (images, captions, references))
    of_image = WEIGHT * np.maximum(_cosines(captions, images), 0)
    closest = np.zeros(len(captions))
    np.maximum.at(closest, image_of, _cosines(captions[image_of], references))
    total = of_image + closest
    both = np.divide(2 * of_image * closest, total, out=np.zeros_like(total), where=total > 0)
    return {"clip_score": mean_measure(of_image), "ref_clip_score": mean_measure(both)}


def sentence_similarity(captions: np.ndarray, references: np.ndarray, image_of: np.ndarray) -> dict[str, Measure]:
    """The mean cosine between a caption and the references of its image, as the sentence part of FENSE has it (Zhou et
    al. 2022, section 3.1).

    Args:
        captions: (N, D).
        references: (M, D).
        image_of: (M,) which of the N captions each reference belongs to; each has one or more.
    """
    captions, references = unit(captions), unit(references)
    total = np.bincount(image_of, _cosines(captions[image_of], references), len(captions))
    return {"sentence_similarity": mean_measure(total / np.bincount(image_of, minlength=len(captions)))}


def unit(vectors: np.ndarray) -> np.ndarray:
    """(n, D) float64: the rows divided by their lengths; a row of zeros stays."""
    vectors = vectors.astype(np.float64)
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12))


def _cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) the cosine of each pair of rows of length 1."""
    return np.asarray(np.einsum("nd,nd->n", a, b))
