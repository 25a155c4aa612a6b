"""The captions of a data set, cut into words and counted: from columns of texts to a vocabulary and its tokens."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.vocabulary import Vocabulary


class _Part(NamedTuple):
    """Some captions: their words, (sum of ``lengths``,), and whether each caption is counted."""

    words: np.ndarray
    lengths: np.ndarray
    counted: np.ndarray
    image_row: np.ndarray
    caption_row: np.ndarray


class Corpus:
    """Captions as the numbers of their words, in the order in which the words first occur: four bytes a word.

    Args:
        splits: the splits whose words are counted.
    """

    def __init__(self, splits: Collection[str]) -> None:
        self._splits, self._parts = splits, list[_Part]()
        self._numbers: dict[str, int] = {}
        self.captions = self.counted = 0

    def add(self, captions: pd.DataFrame, words: Sequence[Sequence[str]]) -> None:
        """Add rows of ``captions.parquet``, each with its words."""
        counted, numbers = captions["split"].isin(self._splits).to_numpy(), self._numbers
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        flat = (numbers.setdefault(word, len(numbers)) for caption in words for word in caption)
        rows = captions["image_row"].to_numpy(np.int32), captions.index.to_numpy(np.int32)
        self._parts.append(_Part(np.fromiter(flat, np.int32, lengths.sum()), lengths, counted, *rows))
        self.captions += len(words)
        self.counted += int(counted.sum())

    def counts(self) -> dict[str, int]:
        """How often each word occurs in the splits that are counted."""
        counts = np.zeros(len(self._numbers), np.int64)
        for part in self._parts:
            counts += np.bincount(part.words[np.repeat(part.counted, part.lengths)], minlength=len(counts))
        return {word: count for word, count in zip(self._numbers, counts.tolist(), strict=True) if count}

    def encode(self, vocabulary: Vocabulary) -> TokenTable:
        """The captions that have a word of the vocabulary. A caption of ``<start> <end>`` alone would teach a captioner
        to write empty captions."""
        index, unknown = vocabulary.index, -1 if vocabulary.unknown is None else vocabulary.unknown
        number = np.array([index.get(word, unknown) for word in self._numbers], np.int32)
        parts = []
        for words, lengths, _, *rows in self._parts:
            known = number[words] >= 0
            kept = np.bincount(np.repeat(np.arange(len(lengths)), lengths)[known], minlength=len(lengths))
            ends = np.cumsum(kept[kept > 0] + 2)
            ids = np.full(ends[-1] if len(ends) else 0, -1, np.int32)
            ids[ends - 1], ids[np.concatenate(([0], ends[:-1]))[: len(ends)]] = vocabulary.end, vocabulary.start
            ids[ids < 0] = number[words][known]
            parts.append((ids, kept[kept > 0] + 2, *(row[kept > 0] for row in rows)))
        ids, lengths, image_row, caption_row = map(np.concatenate, zip(*parts, strict=True))
        return TokenTable(ids, np.concatenate(([0], np.cumsum(lengths))), image_row, caption_row)
