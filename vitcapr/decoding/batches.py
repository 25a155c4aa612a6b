"""Batches of a split's features; the next batch is read while the present one is decoded."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class RowSource(Protocol):
    """An array on disk of which rows can be read, such as ``vitcapr.store.reader.FeatureArray``."""

    def gather(self, rows: NDArray[np.int64]) -> NDArray[Any]: ...


def feature_batches(
    store: Mapping[str, RowSource], arrays: Sequence[str], rows: NDArray[np.int64], size: int, device: torch.device
) -> Iterator[dict[str, Tensor]]:
    """The named arrays of ``rows`` as float32, ``size`` images at a time: ``patches: (B, P, D)``, ``cls: (B, D)``."""

    def read(first: int) -> dict[str, Tensor]:
        return {name: torch.from_numpy(store[name].gather(rows[first : first + size])).float() for name in arrays}

    starts = range(0, len(rows), size)
    with ThreadPoolExecutor(max_workers=1) as reader:
        coming = [reader.submit(read, first) for first in starts[:1]]
        for following in [*starts[1:], None]:
            batch = coming.pop().result()
            if following is not None:
                coming.append(reader.submit(read, following))
            yield {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
