"""Batches for training: randomly sampled images of a store, each with some or all of its captions.

The captions of an image are in the same batch, so its patches are read, transferred and projected once. Only the
batches in preparation are in memory, for any size of the store.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from vitcapr.batches.sources import FeatureSource
from vitcapr.batches.texts import Texts
from vitcapr.encoders.devices import for_device


@dataclass(frozen=True)
class Batch:
    """B images and their M captions.

    Attributes:
        features: array name -> tensor of B rows in the store's dtype: patches (B, P, D), cls (B, D).
        texts: the captions, M rows, as :class:`~vitcapr.batches.texts.Texts` gives them: token ids, features, rows.
        image_index: (M,) int64, the image of each caption among the B images; increasing.
        rows: (B,) int64, rows of the images in the store.
    """

    features: dict[str, torch.Tensor]
    texts: Any
    image_index: torch.Tensor
    rows: torch.Tensor


class Batches:
    """Batches of one epoch, the same for the same seed and epoch; iterate to read them.

    A thread prepares the next batches while the current one is used.

    Args:
        store: an open feature store.
        rows: the images to sample from, for instance those of the training split; images without captions are skipped.
        batch_images: B; the last batch may be smaller.
        captions_per_image: number of captions to sample per image; None: all. Ignored with ``batch_pairs``.
        batch_pairs: number of captions in a batch, sampled from all captions; an epoch is every caption once. An image
            occurs once in a batch, with its sampled captions. ``batch_images`` is then ignored.
        seed, epoch: determine the order and the sampled captions.
        arrays: the arrays of the store to read; a store of aligned vectors has no patches.
        shuffle: False keeps the order of ``rows``, where ``shuffle_chunks`` is None.
        shuffle_chunks: see :func:`shuffled_by_chunks`; None shuffles the whole epoch.
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
        texts: Texts,
        rows: np.ndarray,
        batch_images: int,
        *,
        captions_per_image: int | None = None,
        batch_pairs: int | None = None,
        seed: int = 0,
        epoch: int = 0,
        arrays: Sequence[str] = ("patches",),
        shuffle: bool = True,
        shuffle_chunks: int | None = None,
        start_batch: int = 0,
        share: tuple[int, int] = (0, 1),
        depth: int = 2,
        device: torch.device | None = None,
    ) -> None:
        self._arrays, self._texts = {name: store[name] for name in arrays}, texts
        images = min(len(array) for array in self._arrays.values())
        rows = np.asarray(rows, dtype=np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= images):
            raise ValueError(f"rows from {rows.min()} to {rows.max()} of a store of {images} images")
        self._captions = np.argsort(texts.image_row, kind="stable")
        grouped = texts.image_row[self._captions]
        self._begin = np.searchsorted(grouped, np.arange(images), side="left")
        self._end = np.searchsorted(grouped, np.arange(images), side="right")
        rows = rows[self._end[rows] > self._begin[rows]]
        if not rows.size:
            raise ValueError("no image among the rows has a caption")
        self._seed, self._batch_pairs = (seed, epoch), batch_pairs
        self._per_image = captions_per_image if batch_pairs is None else None
        entries = rows if batch_pairs is None else self._captions_of(rows)
        generator = np.random.default_rng(self._seed)
        if shuffle_chunks is None:
            self._order = generator.permutation(entries) if shuffle else entries
        else:
            chunk = max(array.chunk for array in self._arrays.values())
            owners = entries if batch_pairs is None else texts.image_row[entries]
            self._order = entries[shuffled_by_chunks(owners // chunk, shuffle_chunks, generator)]
        self._batch_size = batch_images if batch_pairs is None else batch_pairs
        self._start_batch, self._share, self._depth = start_batch, share, depth
        self._device = device or torch.device("cpu")

    def __len__(self) -> int:
        """Batches in the whole epoch, those before ``start_batch`` included."""
        return -(-len(self._order) // self._batch_size)

    def smallest(self) -> int:
        """Return the entries of the last batch."""
        return len(self._order) - (len(self) - 1) * self._batch_size

    def batch(self, index: int) -> Batch:
        """Read batch ``index`` of the epoch now, in this thread."""
        parts, rank = self._parts(index), self._share[0]
        rows, captions, counts = parts[rank]
        image_index = np.repeat(np.arange(len(rows)), counts)
        if self._per_image is not None:
            # Each batch has its own generator, so that a continued training samples the same captions. It draws a
            # number for every caption of the whole batch, so that several processes sample what one process samples.
            sizes = [len(part) for _, part, _ in parts]
            first = sum(sizes[:rank])
            lot = np.random.default_rng([*self._seed, index]).random(sum(sizes))[first : first + len(captions)]
            order = np.lexsort((lot, image_index))
            place = np.arange(len(captions)) - np.searchsorted(image_index, image_index)
            kept = np.sort(order[place < self._per_image])
            captions, image_index = captions[kept], image_index[kept]
        return Batch(
            features={name: for_device(array.gather(rows), self._device) for name, array in self._arrays.items()},
            texts=self._texts.of(captions),
            image_index=torch.from_numpy(image_index),
            rows=torch.from_numpy(rows.copy()),
        )

    def _parts(self, index: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Split batch ``index`` among the processes: image rows, captions, and captions per image."""
        entries = self._order[index * self._batch_size : (index + 1) * self._batch_size]
        if self._batch_pairs is None:
            return [
                (rows, self._captions_of(rows), self._end[rows] - self._begin[rows])
                for rows in np.array_split(entries, self._share[1])
            ]
        image_row = self._texts.image_row
        captions = entries[np.argsort(image_row[entries], kind="stable")]
        rows, counts = np.unique(image_row[captions], return_counts=True)
        parts = np.array_split(np.arange(len(rows)), self._share[1])
        ends = [int(counts[: part[-1] + 1].sum()) if len(part) else len(captions) for part in parts]
        return [
            (rows[part], of_part, counts[part])
            for part, of_part in zip(parts, np.split(captions, ends)[: len(parts)], strict=True)
        ]

    def _captions_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the captions of images, image by image."""
        counts = self._end[rows] - self._begin[rows]
        ends = np.cumsum(counts)
        own: np.ndarray = self._captions[np.repeat(self._end[rows] - ends, counts) + np.arange(counts.sum())]
        return own

    def __iter__(self) -> Iterator[Batch]:
        return self.read(range(self._start_batch, len(self)))

    def read(self, numbers: Iterable[int]) -> Iterator[Batch]:
        """Yield the batches with these numbers; a thread prepares the next ones."""
        numbers = iter(numbers)
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


def shuffled_by_chunks(chunks: np.ndarray, together: int, generator: np.random.Generator) -> np.ndarray:
    """Return an order (n,) in which few chunks are read at a time.

    Chunks come in random order, and the entries of ``together`` chunks are shuffled with each other, as in WebDataset's
    shuffle buffer over shuffled shards.

    Args:
        chunks: (n,) the chunk of each entry.
        together: chunks whose entries are shuffled together.
    """
    _, number = np.unique(chunks, return_inverse=True)
    window = generator.permutation(number.max() + 1)[number] // together
    return np.lexsort((generator.random(len(chunks)), window))
