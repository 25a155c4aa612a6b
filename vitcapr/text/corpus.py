"""The captions of a data set, cut into words and counted: from columns of texts to a vocabulary and its tokens."""

from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain, compress

import numpy as np
import pandas as pd

from vitcapr.formats.containers import ROW_GROUP
from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.vocabulary import Vocabulary

_START, _END = 0, 1
"""The numbers that stand around each caption; words have those from 2, in the order in which they first occur."""


class Corpus:
    """Captions as numbers, four bytes a word.

    Args:
        splits: the splits whose words are counted.

    Attributes:
        captions: the number of captions; ``counted``: of those in the splits.
        counts: how often each word occurs in the splits.
    """

    def __init__(self, splits: Collection[str]) -> None:
        self._splits, self._numbers = splits, dict[str, int]()
        # They grow in place: lists of arrays, which have to be joined, would need the memory twice.
        self._words, self._lengths, self._image_row, self._caption_row = (array("i") for _ in range(4))
        self.captions = self.counted = 0
        self.counts = Counter[str]()

    def add(self, captions: pd.DataFrame, words: Sequence[Sequence[str]]) -> None:
        """Add rows of ``captions.parquet``, each with its words."""
        numbers, counted = self._numbers, captions["split"].isin(self._splits)
        self.counts.update(chain.from_iterable(compress(words, counted)))
        for caption in words:
            self._words.extend((_START, *(numbers.setdefault(word, 2 + len(numbers)) for word in caption), _END))
            self._lengths.append(2 + len(caption))
        self._image_row.extend(captions["image_row"])
        self._caption_row.extend(captions.index)
        self.captions += len(words)
        self.counted += int(counted.sum())

    def encode(self, vocabulary: Vocabulary) -> TokenTable:
        """Return the captions that have a word of the vocabulary.

        A caption of ``<start> <end>`` alone would teach a captioner to write empty captions. The table takes the memory
        of the corpus, which can be encoded once.
        """
        index, unknown = vocabulary.index, -1 if vocabulary.unknown is None else vocabulary.unknown
        known = (index.get(word, unknown) for word in self._numbers)
        number = np.array([vocabulary.start, vocabulary.end, *known], np.int32)
        ids, lengths = np.frombuffer(self._words, np.int32), np.frombuffer(self._lengths, np.int32)
        read = written = 0
        for first in range(0, len(lengths), ROW_GROUP):
            part = lengths[first : first + ROW_GROUP]
            words = number[ids[read : read + part.sum()]]
            read += len(words)
            left = np.add.reduceat(words >= 0, np.cumsum(part) - part, dtype=np.int32)
            words = words[(words >= 0) & np.repeat(left > 2, part)]
            ids[written : written + len(words)] = words
            written += len(words)
            part[:] = np.where(left > 2, left, 0)
        kept = lengths > 0
        offsets = np.concatenate(([0], np.cumsum(lengths[kept], dtype=np.int64)))
        rows = (np.frombuffer(each, np.int32)[kept] for each in (self._image_row, self._caption_row))
        return TokenTable(ids[:written], offsets, *rows)
