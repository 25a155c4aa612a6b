"""Back-pointers of beam hypotheses, so that the search never copies histories."""

import torch
from torch import Tensor


class BackPointers:
    """Back-pointers of B images with up to K hypotheses over up to T words.

    Images may leave the batch and hypotheses may become fewer: every call names the images it is about.
    """

    def __init__(self, images: int, beam_size: int, max_length: int, device: torch.device) -> None:
        shape = (max_length, images, beam_size)
        self._parents = torch.zeros(shape, dtype=torch.int64, device=device)
        self._words = torch.zeros(shape, dtype=torch.int64, device=device)
        self._log_probs = torch.zeros(shape, device=device)
        self._attention: list[Tensor] = []
        self._position = torch.zeros(max_length + 1, images, dtype=torch.int64, device=device)
        self._length = 0

    def look(self, rows: Tensor, attention: Tensor) -> None:
        """What the live hypotheses of images ``rows`` look at before their next word, (A, W, P)."""
        self._position[len(self._attention), rows] = torch.arange(len(rows), device=rows.device)
        self._attention.append(attention.half())

    def append(self, rows: Tensor, parents: Tensor, words: Tensor, log_probs: Tensor) -> None:
        """The next words of images ``rows`` and the hypotheses they continue, (A, W) each."""
        width = parents.shape[1]
        self._parents[self._length, rows, :width] = parents
        self._words[self._length, rows, :width] = words
        self._log_probs[self._length, rows, :width] = log_probs
        self._length += 1

    def back(self, slots: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Follow hypotheses back to their beginning.

        Args:
            slots: (B, n) int64, which live hypothesis of the image it was when it had
            lengths: (B, n) int64 words.

        Returns:
            words (B, n, T), their log-probabilities (B, n, T), and attention (B, n, T, P) float16, all zero from the
            length of a hypothesis on; attention is None where none was seen.
        """
        longest = int(lengths.max())
        words = torch.zeros(*slots.shape, longest, dtype=torch.int64, device=slots.device)
        log_probs = torch.zeros(words.shape, device=slots.device)
        attention = None
        if self._attention:
            patches = self._attention[0].shape[2]
            attention = torch.zeros(*words.shape, patches, dtype=torch.float16, device=slots.device)
        for step in reversed(range(longest)):
            image, rank = (step < lengths).nonzero(as_tuple=True)
            slot = slots[image, rank]
            words[image, rank, step] = self._words[step, image, slot]
            log_probs[image, rank, step] = self._log_probs[step, image, slot]
            parent = self._parents[step, image, slot]
            if attention is not None:
                attention[image, rank, step] = self._attention[step][self._position[step, image], parent]
            slots = slots.index_put((image, rank), parent)
        return words, log_probs, attention
