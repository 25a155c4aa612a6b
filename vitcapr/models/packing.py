"""The words of captions without their padding, those of an image side by side, and an LSTM over padded captions."""

from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from vitcapr.encoders.devices import to_device


class WordsOfImages(NamedTuple):
    """Positions of W packed words, which are the real words of all captions, one caption after another.

    Attributes:
        caption, step: (W,) int64, the row and the column of each word in the matrix of the captions.
        image: (W,) int64, the image of each word; increasing.
        slot: (W,) int64, its place among the words of its image.
        counts: (B,) int64, number of words of each image, where the mask is.
        most: N, the largest count.
    """

    caption: Tensor
    step: Tensor
    image: Tensor
    slot: Tensor
    counts: Tensor
    most: int

    @classmethod
    def of(cls, mask: Tensor, image_index: Tensor, images: int, device: torch.device) -> Self:
        """Assign numbers to the packed words.

        Args:
            mask: (M, T) bool, the real words.
            image_index: (M,) int64, the image of each caption; increasing.
            images: B, number of images.
            device: where the words are. From a mask in host memory, the numbers are copied to a GPU, and nothing waits.
        """
        caption, step = mask.nonzero(as_tuple=True)
        image = image_index[caption]
        counts = torch.bincount(image, minlength=images)
        slot = torch.arange(len(image), device=image.device) - (counts.cumsum(0) - counts)[image]
        numbers = to_device(torch.stack([caption, step, image, slot]), device)
        caption, step, image, slot = numbers
        return cls(caption, step, image, slot, counts, int(counts.max()))

    def pack(self, padded: Tensor) -> Tensor:
        """(M, T, ...) -> (W, ...)."""
        return padded[self.caption, self.step]

    def side_by_side(self, words: Tensor) -> Tensor:
        """(W, D) -> (B, N, D): the words of each image, then zeros."""
        places = words.new_zeros(len(self.counts), self.most, words.shape[-1])
        return places.index_put((self.image, self.slot), words)

    def packed(self, values: Tensor) -> Tensor:
        """(B, N, ...) -> (W, ...)."""
        return values[self.image, self.slot]


def lstm_states(lstm: nn.LSTM, words: Tensor, start: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """Return the hidden state after every word, in float32 even under autocast.

    On a CPU, torch may lack a bfloat16 LSTM.

    Args:
        lstm: one layer, one direction, batch first.
        words: (M, T, D).
        start: h and c before the first word, (M, H) each; None for zeros.

    Returns:
        (M, T, H) float32. A state depends only on the words up to its own, so padding at the end changes none of them.
    """
    with torch.autocast(words.device.type, enabled=False):
        given = None if start is None else (start[0].float()[None], start[1].float()[None])
        return lstm(words.float(), given)[0]  # type: ignore[no-any-return]
