"""The words of captions without their padding, and the words of an image side by side."""

from typing import NamedTuple, Self

import torch
from torch import Tensor


class WordsOfImages(NamedTuple):
    """Where each of W packed words belongs. Packed words are the real ones, row-major: the captions one by one.

    Attributes:
        image: (W,) int64, the image of each word; increasing.
        slot: (W,) int64, its place among the words of its image.
        counts: (B,) int64, number of words of each image.
    """

    image: Tensor
    slot: Tensor
    counts: Tensor

    @classmethod
    def of(cls, mask: Tensor, image_index: Tensor, images: int) -> Self:
        """
        Args:
            mask: (M, T) bool, the real words.
            image_index: (M,) int64, the image of each caption; increasing.
            images: B, number of images.
        """
        image = image_of_each_word(mask, image_index)
        counts = torch.bincount(image, minlength=images)
        slot = torch.arange(len(image), device=image.device) - (counts.cumsum(0) - counts)[image]
        return cls(image, slot, counts)

    def side_by_side(self, words: Tensor) -> Tensor:
        """(W, D) -> (B, N, D): the words of each image, then zeros; N is the largest count."""
        places = words.new_zeros(len(self.counts), int(self.counts.max()), words.shape[-1])
        return places.index_put((self.image, self.slot), words)

    def packed(self, values: Tensor) -> Tensor:
        """(B, N, ...) -> (W, ...)."""
        return values[self.image, self.slot]


def image_of_each_word(mask: Tensor, image_index: Tensor) -> Tensor:
    """(mask.sum(),) int64: the image of the word at each real position."""
    return image_index[:, None].expand_as(mask)[mask]
