"""Scores of captions by the vectors of an encoder: CLIPScore, RefCLIPScore, similarity of sentences, BERTScore."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from vitcapr.metrics.bootstrap import Measure, mean_measure

F = TypeVar("F", bound=np.floating[Any])

WEIGHT = 2.5
"""w of Hessel et al. 2021, section 3."""
PROMPT = "A photo depicts "
"""Precedes every caption and reference of CLIPScore, as in the paper."""
_BLOCK = 64
"""Images whose vectors of tokens are in memory at a time."""


class Encoder(Protocol):
    """Sentences to vectors, as :class:`vitcapr.encoders.sentence_vectors.SentenceVectors`."""

    name: str

    def __call__(self, sentences: Sequence[str]) -> np.ndarray: ...

    def tokens(self, layer: int | None) -> tuple[Any, Any]: ...


@dataclass
class CaptionSimilarity:
    """One caption for each of N images, compared with the references by one encoder after another.

    Attributes:
        measures, protocol: the scores until now, and how they were made.
    """

    captions: Sequence[str]
    references: Sequence[Sequence[str]]
    measures: dict[str, Measure] = field(default_factory=dict)
    protocol: list[str] = field(default_factory=list)

    def by_clip(self, encoder: Encoder, images: np.ndarray) -> None:
        """Score by CLIP.

        Args:
            encoder: puts ``PROMPT`` before every sentence.
            images: (N, D), their vectors in the encoder's space.
        """
        self.measures |= clip_scores(images, encoder(self.captions), encoder(self._texts), self._image_of)
        self.protocol.append(f"clip:{encoder.name},w={WEIGHT},prompt={PROMPT.strip()}")

    def by_sentences(self, encoder: Encoder, pool: str) -> None:
        self.measures |= sentence_similarity(encoder(self.captions), encoder(self._texts), self._image_of)
        self.protocol.append(f"sentences:{encoder.name},pool={pool},mean over references")

    def by_tokens(self, encoder: Encoder, layer: int | None, idf: bool) -> None:
        reader, vectors = encoder.tokens(layer)
        tokens, others = reader.tokenize(self.captions), reader.tokenize(self._texts)
        self.measures |= bert_score(tokens, others, self._image_of, vectors, vectors.special, idf)
        how = f"layer={'last' if layer is None else layer},idf={'references' if idf else 'none'}"
        self.protocol.append(f"bert_score:{encoder.name},{how},maximum over references,baseline rescaling=none")

    @property
    def _texts(self) -> list[str]:
        return [text for of_image in self.references for text in of_image]

    @property
    def _image_of(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.references)), [len(of_image) for of_image in self.references])


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


def sentence_similarity(captions: np.ndarray, references: np.ndarray, image_of: np.ndarray) -> dict[str, Measure]:
    """Return the mean cosine between a caption and the references of its image.

    The sentence part of FENSE (Zhou et al. 2022, section 3.1).

    Args:
        captions: (N, D).
        references: (M, D).
        image_of: (M,) which of the N captions each reference belongs to; each has one or more.
    """
    captions, references = (unit(each.astype(np.float64)) for each in (captions, references))
    total = np.bincount(image_of, _cosines(captions[image_of], references), len(captions))
    return {"sentence_similarity": mean_measure(total / np.bincount(image_of, minlength=len(captions)))}


class Tokens(NamedTuple):
    """A sentence of T tokens."""

    vectors: np.ndarray
    """(T, D)."""
    weights: np.ndarray
    """(T,) not negative; a token of weight 0 can be matched and does not count itself."""


def greedy_match(caption: Tokens, reference: Tokens) -> tuple[float, float, float]:
    """Precision, recall and F1 of a caption by one reference (Zhang et al. 2020, "BERTScore", section 3).

    R is the weighted mean over the reference's tokens of the greatest cosine with a token of the caption, P the same
    over the caption's tokens, and F1 their harmonic mean. All are 0 if a sentence has no token that counts.
    """
    cosines = unit(caption.vectors.astype(np.float64)) @ unit(reference.vectors.astype(np.float64)).T
    own, other = caption.weights.sum(), reference.weights.sum()
    if own <= 0 or other <= 0:
        return 0.0, 0.0, 0.0
    precision = float(cosines.max(axis=1) @ caption.weights / own)
    recall = float(cosines.max(axis=0) @ reference.weights / other)
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total > 0 else 0.0


def inverse_document_frequencies(references: Sequence[Sequence[int]]) -> dict[int, float]:
    """log((M + 1) / (n + 1)) of each token that is in n of the M references (section 3, smoothed)."""
    counts = Counter(token for reference in references for token in set(reference))
    return {token: math.log((len(references) + 1) / (count + 1)) for token, count in counts.items()}


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

    own = [np.flatnonzero(image_of == image).tolist() for image in range(len(captions))]
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


def unit(rows: npt.NDArray[F]) -> npt.NDArray[F]:
    """(n, D): the rows divided by their lengths; a row of zeros stays."""
    scaled: npt.NDArray[F] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return scaled


def _cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n,) the cosine of each pair of rows of length 1."""
    return np.asarray(np.einsum("nd,nd->n", a, b))
