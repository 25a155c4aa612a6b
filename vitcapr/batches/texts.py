"""The captions of a data set as inputs of a model, by their places in a table of M captions."""

from typing import Any, Protocol

import numpy as np
import torch

from vitcapr.batches.sources import GatheredArray
from vitcapr.errors import UserError
from vitcapr.formats.tokens import TokenTable

PAD = 0


class Texts(Protocol):
    """``image_row`` is (M,), the image of each caption."""

    image_row: np.ndarray

    def of(self, captions: np.ndarray) -> Any:
        """Return the inputs for the captions at these places, (m,) int64."""
        ...


class WordTexts:
    """Captions as token ids (m, T) int64, padded with 0 to the longest.

    Captions longer than ``max_length`` are cut.
    """

    def __init__(self, table: TokenTable, max_length: int) -> None:
        self.image_row, self._table, self._max_length = table.image_row, table, max_length

    def of(self, captions: np.ndarray) -> torch.Tensor:
        begin = self._table.offsets[captions]
        lengths = np.minimum(self._table.offsets[captions + 1] - begin, self._max_length)
        steps = np.arange(lengths.max(initial=1))
        inside = steps < lengths[:, None]
        padded = np.full(inside.shape, PAD, np.int64)
        padded[inside] = self._table.ids[(begin[:, None] + steps)[inside]]
        return torch.from_numpy(padded)


class FeatureTexts:
    """Captions as text features, (m, D).

    Args:
        array: (N, D).
        caption_row, image_row: (M,), for each caption its row in the array and the row of its image.
    """

    def __init__(self, array: GatheredArray, caption_row: np.ndarray, image_row: np.ndarray) -> None:
        self.image_row, self._caption_row, self._array = image_row, caption_row, array

    def of(self, captions: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self._array.gather(self._caption_row[captions]))


class FeatureAndWordTexts:
    """Captions in both forms: text features, and token ids."""

    def __init__(self, features: FeatureTexts, words: WordTexts) -> None:
        self.image_row, self.features, self._words = words.image_row, features, words

    def of(self, captions: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        return self.features.of(captions), self._words.of(captions)


def draw_pairs(image_row: np.ndarray, rows: np.ndarray, pairs: int | None, seed: int) -> np.ndarray:
    """Return the captions that remain after sampling ``pairs`` captions of the images ``rows``.

    All captions of other images remain. With the same seed, a larger sample contains the smaller one. None keeps all.

    Args:
        image_row: (M,), the image of each caption.

    Returns:
        (M,) bool.

    Raises:
        UserError: there are fewer captions than pairs.
    """
    drawn_from = np.isin(image_row, rows)
    kept = ~drawn_from
    captions = np.flatnonzero(drawn_from)
    if pairs is not None and pairs > len(captions):
        raise UserError(f"{pairs:,} pairs of {len(captions):,} captions", remedy="sample fewer pairs")
    kept[np.random.default_rng(seed).permutation(captions)[:pairs]] = True
    return kept
