"""Captions as word numbers, written by hand."""

from collections.abc import Sequence

import numpy as np

from vitcapr.formats.tokens import TokenTable


def token_table(captions: Sequence[Sequence[int]], image_row: Sequence[int], caption_row: Sequence[int]) -> TokenTable:
    """One list of word numbers a caption."""
    ids = np.array([number for caption in captions for number in caption], np.int32)
    offsets = np.cumsum([0, *map(len, captions)], dtype=np.int64)
    return TokenTable(ids, offsets, np.asarray(image_row, np.int32), np.asarray(caption_row, np.int32))
