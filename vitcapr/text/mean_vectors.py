"""A caption as the mean of the vectors of its words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitcapr.text.normalise import words_of
from vitcapr.text.word_vectors import VectorFile


@dataclass(frozen=True)
class CaptionVectors:
    """Attributes:
    vectors: (M, W) float32 of length 1; zero where no word of the caption has a vector.
    words_found: the share of all words that have one.
    """

    vectors: npt.NDArray[np.float32]
    words_found: float

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """(M,): whether a caption has a vector."""
        known: npt.NDArray[np.bool_] = (self.vectors != 0).any(axis=1)
        return known


def caption_vectors(captions: Sequence[str], file: VectorFile) -> CaptionVectors:
    """The mean over a caption's words, those that occur twice twice, brought to length 1.

    Of a word that stands in the file twice the first vector counts.

    Raises:
        UserError: the file of word vectors is missing or has another dimension.
    """
    words = [words_of(caption) for caption in captions]
    asked = {word for caption in words for word in caption}
    found: dict[str, npt.NDArray[np.float32]] = {}
    for word, vector in file:
        if word in asked:
            found.setdefault(word, np.asarray(vector, np.float32))
    vectors = np.zeros((len(captions), file.dimension), np.float32)
    for row, caption in enumerate(words):
        for word in caption:
            if word in found:
                vectors[row] += found[word]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)
    vectors /= np.where(lengths > 0, lengths, np.float32(1))
    total = sum(map(len, words))
    have = sum(word in found for caption in words for word in caption)
    return CaptionVectors(vectors, have / max(1, total))
