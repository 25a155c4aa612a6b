"""Captions picked one by one: their words and, where they are stored, the features of a text encoder."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from vitcapr.data.manifest import Manifest
from vitcapr.errors import UserError
from vitcapr.features.batches.loader import PAD, GatheredArray
from vitcapr.features.store.reader import FeatureStore
from vitcapr.text.tokens import TokenTable


class Captions:
    """The captions of a table of words, by their place in it.

    Args:
        table: ``ids``, ``offsets`` and ``caption_row``, as in ``tokens.npz``.
        max_length: longest caption in tokens; longer ones are cut.
        features: (M, D), a row for each row of captions.parquet; None where there are none.
    """

    def __init__(
        self, table: Mapping[str, NDArray[np.integer]], max_length: int, features: GatheredArray | None = None
    ) -> None:
        self._ids, self._offsets, self._rows = table["ids"], table["offsets"], table["caption_row"]
        self._max_length, self._features = max_length, features

    def of(self, places: NDArray[np.integer], device: torch.device) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Words (n, T) int64, padded with 0, and features (n, D) float32 where there are any."""
        begin = self._offsets[places]
        lengths = np.minimum(self._offsets[places + 1] - begin, self._max_length)
        steps = np.arange(int(lengths.max()))
        inside = steps < lengths[:, None]
        words = np.full(inside.shape, PAD, np.int64)
        words[inside] = self._ids[(begin[:, None] + steps)[inside]]
        tokens = torch.from_numpy(words).to(device)
        if self._features is None:
            return tokens, None
        return tokens, torch.from_numpy(self._features.gather(self._rows[places])).to(device).float()


def captions_of(table: TokenTable, max_length: int, sentences: FeatureStore | None, data: Manifest) -> Captions:
    """The captions of a data set.

    Args:
        sentences: the store of their text features, if these are read.

    Raises:
        UserError: the text features are of other captions.
    """
    if sentences is not None and sentences.ids != data.captions["caption_id"].tolist():
        raise UserError(
            f"the text features are not those of the captions of the data set {data.dataset}",
            where=sentences.path,
            remedy="extract the text features of this data set",
        )
    arrays: dict[str, NDArray[np.integer]] = {
        "ids": table.ids,
        "offsets": table.offsets,
        "caption_row": table.caption_row,
    }
    return Captions(arrays, max_length, None if sentences is None else sentences["text"])
