"""Batches for contrastive training: randomly sampled images of a store, each with some or all of its captions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from vitcapr.batches.loader import CaptionBatch, CaptionBatches
from vitcapr.batches.sources import FeatureSource, GatheredArray
from vitcapr.errors import UserError

PairTexts = torch.Tensor | tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class PairBatch:
    """B images and their M captions.

    Attributes:
        features: array name -> tensor of B rows in the store's dtype.
        texts: the input of the text tower: token ids (M, T) int64, padded with 0; or features (M, D) in the dtype of
            their store; or both, features first.
        image_index: (M,) int64, the image of each caption among the B images; increasing.
        rows: (B,) int64, rows of the images in the store.
    """

    features: dict[str, torch.Tensor]
    texts: PairTexts
    image_index: torch.Tensor
    rows: torch.Tensor


class Texts(Protocol):
    """The captions of a data set as inputs of a text tower."""

    @property
    def table(self) -> Mapping[str, np.ndarray]:
        """``ids``, ``offsets``, ``image_row``: the input of :class:`CaptionBatches`."""
        ...

    @property
    def max_length(self) -> int | None: ...

    def of(self, ids: torch.Tensor) -> PairTexts:
        """The texts of captions given as rows of ``ids``, (M, T) int64."""
        ...


class WordTexts:
    """Captions as token ids. ``table``: the arrays of ``tokens.npz``."""

    def __init__(self, table: Mapping[str, np.ndarray], max_length: int) -> None:
        self.table, self.max_length = table, max_length

    def of(self, ids: torch.Tensor) -> torch.Tensor:
        return _cut(ids)


class CaptionRows:
    """Captions as rows of ``captions.parquet`` or of a store; the reader of a batch makes inputs of them.

    Args:
        caption_row, image_row: (n,), for each caption to use, its row and the row of its image.
    """

    max_length = None

    def __init__(self, caption_row: np.ndarray, image_row: np.ndarray) -> None:
        rows = np.asarray(caption_row)
        # The only token of a caption is its row.
        self.table = {"ids": rows, "offsets": np.arange(len(rows) + 1), "image_row": np.asarray(image_row)}

    def of(self, ids: torch.Tensor) -> torch.Tensor:
        return ids[:, 0]


class FeatureTexts(CaptionRows):
    """Captions as rows of a store of text features. ``array``: (M, D), a row for each caption of the data set."""

    def __init__(self, array: GatheredArray, caption_row: np.ndarray, image_row: np.ndarray) -> None:
        super().__init__(caption_row, image_row)
        self._array = array

    def of(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self._array.gather(ids[:, 0].numpy()))

    def features_of(self, captions: np.ndarray) -> torch.Tensor:
        """The features of captions given by their places in the table."""
        return torch.from_numpy(self._array.gather(self.table["ids"][captions]))


class FeatureAndWordTexts:
    """Captions as rows ``caption_row: (n,)`` of a store of text features ``(M, D)`` and as token ids ``words``."""

    def __init__(
        self, array: GatheredArray, caption_row: np.ndarray, words: Mapping[str, np.ndarray], max_length: int
    ) -> None:
        self._array, self._caption_row = array, np.asarray(caption_row)
        offsets = np.asarray(words["offsets"])
        # The row of a caption's feature precedes its token ids.
        self.table = {
            "ids": np.insert(np.asarray(words["ids"], np.int64), offsets[:-1], self._caption_row),
            "offsets": offsets + np.arange(len(offsets)),
            "image_row": words["image_row"],
        }
        self.max_length = max_length + 1

    def of(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.from_numpy(self._array.gather(ids[:, 0].numpy())), _cut(ids[:, 1:])

    def features_of(self, captions: np.ndarray) -> torch.Tensor:
        """The features of captions given by their places in the table."""
        return torch.from_numpy(self._array.gather(self._caption_row[captions]))


def _cut(ids: torch.Tensor) -> torch.Tensor:
    """Cut the padding to the longest caption of the batch."""
    return ids[:, : int((ids != 0).sum(1).max())] if len(ids) else ids


class PairBatches:
    """One epoch of batches, the same for the same seed and epoch; iterate to read them.

    The images have the order of :class:`CaptionBatches`, which reads them ahead.

    Args:
        captions_per_image: number of captions to sample per image; None: all. Ignored with ``batch_pairs``.
        rows, batch_images, batch_pairs, seed, epoch, start_batch, share, options: as in :class:`CaptionBatches`.
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
        start_batch: int = 0,
        share: tuple[int, int] = (0, 1),
        **options: Any,
    ) -> None:
        self._texts, self._start_batch, self._rank, self._seed = texts, start_batch, share[0], (seed, epoch)
        self._captions = captions_per_image if batch_pairs is None else None
        options |= {"batch_pairs": batch_pairs, "seed": seed, "epoch": epoch, "start_batch": start_batch}
        self._images = CaptionBatches(
            store, texts.table, rows, batch_images, max_length=texts.max_length, share=share, **options
        )

    def __len__(self) -> int:
        """Batches in the whole epoch, those before ``start_batch`` included."""
        return len(self._images)

    def __iter__(self) -> Iterator[PairBatch]:
        for number, batch in enumerate(self._images, start=self._start_batch):
            kept = self._drawn(batch, number)
            yield PairBatch(batch.features, self._texts.of(batch.tokens[kept]), batch.image_index[kept], batch.rows)

    def _drawn(self, batch: CaptionBatch, number: int) -> torch.Tensor:
        """The places of the sampled captions in the batch, increasing."""
        image = batch.image_index.numpy()
        if self._captions is None:
            return torch.arange(len(image))
        # Each batch has its own generator, so that a continued training samples the same captions. It draws a number
        # for every caption of the whole batch, so that several processes together sample what one process samples.
        parts = self._images.captions_in_parts(number)
        first = sum(parts[: self._rank])
        lot = np.random.default_rng([*self._seed, number]).random(sum(parts))[first : first + len(image)]
        order = np.lexsort((lot, image))
        place = np.arange(len(image)) - np.searchsorted(image, image)
        return torch.from_numpy(np.sort(order[place < self._captions]))


def draw_pairs(image_row: np.ndarray, rows: np.ndarray, pairs: int | None, seed: int) -> np.ndarray:
    """The captions that remain after sampling ``pairs`` captions of the images ``rows``.

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
