"""Batches for training: randomly sampled images of a store, each with all its captions.

All captions of an image are in the same batch, so its patches are read, transferred and projected once. Only the
batches in preparation are in memory, for any size of the store.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from vitcapr.batches.sources import FeatureSource
from vitcapr.encoders.staging import for_device

PAD = 0


@dataclass(frozen=True)
class CaptionBatch:
    """B images and their M captions.

    Attributes:
        features: array name -> tensor of B rows in the store's dtype: patches (B, P, D), cls (B, D).
        tokens: (M, T) int64, padded with 0, T the longest caption of the batch.
        image_index: (M,) int64, the image of each caption among the B images; increasing.
        rows: (B,) int64, rows of the images in the store.
    """

    features: dict[str, torch.Tensor]
    tokens: torch.Tensor
    image_index: torch.Tensor
    rows: torch.Tensor


class CaptionBatches:
    """One epoch of batches, the same for the same seed and epoch; iterate to read them.

    A thread prepares the next batches while the current one is used.

    Args:
        store: an open feature store.
        tokens: the arrays of ``tokens.npz``: ``ids``, ``offsets``, ``image_row``.
        rows: the images to sample from, for instance those of the training split; images without captions are skipped.
        batch_images: B; the last batch may be smaller.
        batch_pairs: number of captions in a batch, sampled from all captions; an epoch is every caption once. An image
            occurs once in a batch, with its sampled captions. ``batch_images`` is then ignored.
        seed, epoch: determine the order.
        max_length: maximum number of tokens of a caption; longer captions are cut.
        arrays: the arrays of the store to read; a store of aligned vectors has no patches.
        shuffle: False keeps the order of ``rows``.
        start_batch: the first batch to yield, to continue an interrupted epoch.
        share: ``(rank, processes)`` of this process. It reads only its part of every batch. The parts of the processes
            are consecutive, and some are empty if there are more processes than images.
        depth: number of batches prepared ahead.
        device: the features are in memory from which this device copies.

    Raises:
        ValueError: a row is not in the store, or no image has a caption.
    """

    def __init__(
        self,
        store: FeatureSource,
        tokens: Mapping[str, np.ndarray],
        rows: np.ndarray,
        batch_images: int,
        *,
        seed: int = 0,
        epoch: int = 0,
        batch_pairs: int | None = None,
        max_length: int | None = None,
        arrays: Sequence[str] = ("patches",),
        shuffle: bool = True,
        start_batch: int = 0,
        share: tuple[int, int] = (0, 1),
        depth: int = 2,
        device: torch.device | None = None,
    ) -> None:
        self._arrays = {name: store[name] for name in arrays}
        self._ids, self._offsets = np.asarray(tokens["ids"]), np.asarray(tokens["offsets"])
        image_row = np.asarray(tokens["image_row"])
        images = min(len(array) for array in self._arrays.values())
        rows = np.asarray(rows, dtype=np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= images):
            raise ValueError(f"rows from {rows.min()} to {rows.max()} of a store of {images} images")
        self._captions = np.argsort(image_row, kind="stable")
        grouped = image_row[self._captions]
        self._begin = np.searchsorted(grouped, np.arange(images), side="left")
        self._end = np.searchsorted(grouped, np.arange(images), side="right")
        rows = rows[self._end[rows] > self._begin[rows]]
        if not rows.size:
            raise ValueError("no image among the rows has a caption")
        generator = np.random.default_rng([seed, epoch])
        self._image_row, self._batch_pairs = image_row, batch_pairs
        if batch_pairs is not None:
            captions = self._captions_of(rows)
            self._order, self._batch_size = generator.permutation(captions) if shuffle else captions, batch_pairs
        else:
            self._order = generator.permutation(rows) if shuffle else rows
            self._batch_size = batch_images
        self._max_length = max_length
        self._start_batch, self._share, self._depth, self._device = start_batch, share, depth, device

    def __len__(self) -> int:
        """Batches in the whole epoch, those before ``start_batch`` included."""
        return -(-len(self._order) // self._batch_size)

    def batch(self, index: int) -> CaptionBatch:
        """Read batch ``index`` of the epoch now, in this thread."""
        rows, captions, counts = self._parts(index)[self._share[0]]
        return CaptionBatch(
            features={name: for_device(array.gather(rows), self._device) for name, array in self._arrays.items()},
            tokens=torch.from_numpy(self._padded(captions)),
            image_index=torch.from_numpy(np.repeat(np.arange(len(rows)), counts)),
            rows=torch.from_numpy(rows.copy()),
        )

    def captions_in_parts(self, index: int) -> list[int]:
        """The number of captions of batch ``index`` in the part of each process."""
        return [len(captions) for _, captions, _ in self._parts(index)]

    def _parts(self, index: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each process, its part of batch ``index``: image rows, captions, and number of captions of each image."""
        entries = self._order[index * self._batch_size : (index + 1) * self._batch_size]
        if self._batch_pairs is None:
            return [
                (rows, self._captions_of(rows), self._end[rows] - self._begin[rows])
                for rows in np.array_split(entries, self._share[1])
            ]
        captions = entries[np.argsort(self._image_row[entries], kind="stable")]
        rows, counts = np.unique(self._image_row[captions], return_counts=True)
        parts = np.array_split(np.arange(len(rows)), self._share[1])
        ends = [int(counts[: part[-1] + 1].sum()) if len(part) else len(captions) for part in parts]
        return [
            (rows[part], of_part, counts[part])
            for part, of_part in zip(parts, np.split(captions, ends)[: len(parts)], strict=True)
        ]

    def _captions_of(self, rows: np.ndarray) -> np.ndarray:
        """The captions of images, image by image."""
        own = (self._captions[self._begin[row] : self._end[row]] for row in rows)
        return np.concatenate([np.empty(0, np.int64), *own])

    def _padded(self, captions: np.ndarray) -> np.ndarray:
        """The token matrix of the captions with the given numbers: (M, T) int64; T is 1 where there are none."""
        begin = self._offsets[captions]
        lengths = self._offsets[captions + 1] - begin
        if self._max_length is not None:
            lengths = np.minimum(lengths, self._max_length)
        steps = np.arange(lengths.max(initial=1))
        inside = steps < lengths[:, None]
        padded = np.full(inside.shape, PAD, np.int64)
        padded[inside] = self._ids[(begin[:, None] + steps)[inside]]
        return padded

    def __iter__(self) -> Iterator[CaptionBatch]:
        numbers = iter(range(self._start_batch, len(self)))
        with ThreadPoolExecutor(1, thread_name_prefix="batches") as pool:
            ahead = deque(pool.submit(self.batch, index) for index in islice(numbers, self._depth))
            try:
                while ahead:
                    batch = ahead.popleft().result()
                    ahead.extend(pool.submit(self.batch, index) for index in islice(numbers, 1))
                    yield batch
            finally:
                for future in ahead:
                    future.cancel()
