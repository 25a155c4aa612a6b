"""CIDEr-D of word numbers against an image's references; the end token counts as a word."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from vitcapr.formats.tokens import TokenTable

_ORDERS = 4
_SIGMA = 6.0


class CiderReward:
    """CIDEr-D (Vedantam et al. 2015, section 6: n = 1 to 4, sigma 6, clipped, times 10) as a reward.

    The end token is part of candidates and references. Without it a caption that breaks off after a good n-gram costs
    nothing, and a captioner trained on the score learns to end in "of a".

    Document frequencies are those of the references given here and stay as they are. The vectors of an image's
    references are made when it is scored: that takes a tenth of a millisecond, and to keep them would take gigabytes
    for a large data set.

    Args:
        tokens: all captions, start and end included.
        rows: the images whose captions are the references, those of the training split.
        vocabulary: how many words there are.
    """

    def __init__(self, tokens: TokenTable, rows: np.ndarray, vocabulary: int) -> None:
        self._base = vocabulary
        wanted = set(rows.tolist())
        self._references: dict[int, list[list[int]]] = {}
        for caption, row in enumerate(tokens.image_row.tolist()):
            if row in wanted:
                self._references.setdefault(row, []).append(tokens[caption].tolist()[1:])
        images: Counter[int] = Counter()
        for references in self._references.values():
            images.update({gram for words in references for grams in self._grams(words) for gram in grams})
        self._rarest = math.log(max(1, len(self._references)))
        # An n-gram of no image counts like that of one, and most are of one: neither is kept.
        self._rarity = {gram: self._rarest - math.log(count) for gram, count in images.items() if count > 1}

    def __call__(self, row: int, candidates: Sequence[Sequence[int]]) -> list[float]:
        """The score, 0 to 10, of each candidate for the image ``row``.

        Args:
            candidates: word numbers without the start token, at least one each.

        Raises:
            KeyError: the image has no references.
        """
        references = self._references[row]
        vectors = [self._vectors(words) for words in references]
        norms = [[_norm(vector) for vector in orders] for orders in vectors]
        # For each order, what each n-gram weighs in which reference.
        postings: list[dict[int, list[tuple[int, float]]]] = [{} for _ in range(_ORDERS)]
        for place, orders in enumerate(vectors):
            for order, vector in enumerate(orders):
                for gram, weight in vector.items():
                    postings[order].setdefault(gram, []).append((place, weight))
        scores = []
        for candidate in candidates:
            alike = [
                math.exp(-((len(candidate) - len(words)) ** 2) / (2 * _SIGMA**2)) / len(references)
                for words in references
            ]
            total = 0.0
            for order, vector in enumerate(self._vectors(candidate)):
                products = [0.0] * len(references)
                for gram, weight in vector.items():
                    for place, other in postings[order].get(gram, ()):
                        products[place] += min(weight, other) * other
                norm = _norm(vector)
                for place, product in enumerate(products):
                    if product:
                        total += alike[place] * product / (norm * norms[place][order])
            scores.append(10 * total / _ORDERS)
        return scores

    def _grams(self, words: Sequence[int]) -> Iterator[list[int]]:
        """The n-grams of each order, packed into one number: digits of base V. No word is 0, so orders differ."""
        grams = list(words)
        yield grams
        for order in range(1, _ORDERS):
            grams = [gram * self._base + word for gram, word in zip(grams, words[order:], strict=False)]
            yield grams

    def _vectors(self, words: Sequence[int]) -> list[dict[int, float]]:
        """Term frequency times inverse document frequency of the n-grams of each order."""
        rarity, rarest = self._rarity, self._rarest
        return [
            {gram: count * rarity.get(gram, rarest) for gram, count in Counter(grams).items()}
            for grams in self._grams(words)
        ]


def _norm(vector: dict[int, float]) -> float:
    return math.sqrt(sum(weight * weight for weight in vector.values()))
