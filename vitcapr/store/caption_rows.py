"""Text features in a store, from the captions of a data set by a frozen text encoder.

Apart from the rows of images on purpose: an edit of how images are decoded must not make text features stale.
"""

import time
from collections.abc import Generator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from vitcapr.encoders.devices import dtype_name, memory_line
from vitcapr.encoders.network_checks import NO_GRID
from vitcapr.encoders.text_encoders import TextEncoder
from vitcapr.encoders.text_towers import WordVectorEncoder
from vitcapr.store.layout import TEXT, Rows

CHUNK = 1024
"""Captions in one chunk of the store: under a megabyte, and a killed run loses a second or two of work."""


class CaptionFeatures:
    """Captions through a frozen text encoder."""

    grid = NO_GRID

    def __init__(self, rows: Rows, encoder: TextEncoder | WordVectorEncoder, store_dtype: str) -> None:
        self._rows, self._encoder, self.device = rows, encoder, encoder.device
        self.store_dtype, self.waited = store_dtype, 0.0
        self.shapes: Mapping[str, tuple[int, ...]] = {TEXT: (encoder.dim,)}
        self.summary = f"vectors of {encoder.dim}, {dtype_name(encoder.dtype)} on {self.device.type}"
        self._cut, self._unknown = 0, torch.zeros((), dtype=torch.int64, device=self.device)

    def compute(self, batches: Sequence[np.ndarray]) -> Generator[dict[str, Tensor], None, None]:
        for rows in batches:
            begin = time.perf_counter()
            tokens = self._encoder.tokenize(self._rows.texts(rows))
            self._cut += sum(len(of_caption) == self._encoder.longest for of_caption in tokens)
            self.waited += time.perf_counter() - begin
            vectors = self._encoder.encode_tokens(tokens)
            self._unknown += (vectors == 0).all(1).sum()
            yield {TEXT: vectors}

    def remarks(self) -> list[str]:
        lines = [memory_line(self._encoder.model, self.device)]
        if self._cut:
            longest = self._encoder.longest
            lines.append(f"{self._cut} captions have max_length ({longest}) tokens, or had more and were cut")
        if unknown := int(self._unknown):
            lines.append(f"{unknown} captions have no word with a vector; theirs is zero")
        return lines
