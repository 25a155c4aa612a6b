"""Hard negatives: the negative captions most similar to an image, mined in the batch or in a queue.

ViTCap-R (section III.E.2) takes, for each image, the two captions most similar to it and of these the second: the first
is expected to be the true one. It doesn't say what becomes of the choice where the true caption is not the first, nor
how the hard negative enters the loss. Here:

* The image's other captions are left out, so the two are the best among the true caption and other images' captions. *
If the second is the true caption itself, the pair has no hard negative: it must not be pushed away. * The loss of a
pair is the binary cross-entropy of the choice between its caption and the hard negative, at the temperature of the
contrastive loss, to which it is added with a weight.
"""

import copy
from typing import Literal

import torch
from torch import Tensor, nn

from vitcapr.models.dual_encoder import TextBatch, on_sphere
from vitcapr.models.towers import TextTower
from vitcapr.training.contrastive import true_pairs

Rule = Literal["second", "hardest"]

_NOBODY = -1.0


class MomentumQueue(nn.Module):
    """Embeddings of past captions by a momentum text tower, from which hard negatives are mined in addition to the
    batch.

    He et al. 2020 (MoCo): the follower's weights are a moving average of the text tower's, so that what is in the queue
    was made by nearly the same network. The queue and the follower are part of the state of a training.

    Args:
        tower: the text tower that is trained.
        size: Q, captions kept; the oldest give way.
        momentum: how much of the follower stays at each step.
    """

    rows: Tensor
    captions: Tensor
    place: Tensor

    def __init__(self, tower: TextTower, embedding_dim: int, size: int, momentum: float) -> None:
        super().__init__()
        self.follower = copy.deepcopy(tower).requires_grad_(False)
        self._size, self._momentum = size, momentum
        self._next: int | None = None
        self.register_buffer("captions", torch.zeros(size, embedding_dim))
        # Row numbers and the place to write are floats because the weight average goes over all of a model's tensors;
        # a float64 holds every row number exactly.
        self.register_buffer("rows", torch.full((size,), _NOBODY, dtype=torch.float64))
        self.register_buffer("place", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def follow(self, tower: TextTower) -> None:
        """Move the follower's weights towards the tower's.

        All the way while the queue is empty: what was trained before mining began is not followed step by step.
        """
        empty = self._next is None and bool((self.rows == _NOBODY).all())
        momentum = 0.0 if empty else self._momentum
        for mine, its in zip(self.follower.state_dict().values(), tower.state_dict().values(), strict=True):
            mine.lerp_(its, 1 - momentum)

    @torch.no_grad()
    def see(self, texts: TextBatch) -> Tensor:
        """Captions as the follower embeds them, (M, E); there may be none."""
        self.follower.eval()
        return on_sphere(self.follower(texts)) if len(texts) else self.captions[:0]

    @torch.no_grad()
    def push(self, captions: Tensor, rows: Tensor) -> None:
        """Put a batch's captions, as the follower sees them, in the place of the oldest.

        Args:
            captions: (M, E), rows: (M,), the images they belong to.
        """
        captions = captions[-self._size :]
        first = int(self.place) if self._next is None else self._next  # Read from the device once.
        places = (first + torch.arange(len(captions), device=captions.device)) % self._size
        self.captions[places], self.rows[places] = captions, rows[-self._size :].double()
        if len(captions):
            self._next = (first + len(captions)) % self._size
            self.place.fill_(self._next)

    def wrong_for(self, rows: Tensor) -> Tensor:
        """(B, Q) bool: the place is filled, with a caption of another image. rows: (B,)."""
        return (self.rows != _NOBODY) & (self.rows != rows[:, None].double())


def mined_loss(
    similarity: Tensor,
    image_index: Tensor,
    candidates: Tensor,
    wrong: Tensor,
    temperature: Tensor,
    rule: Rule,
) -> Tensor:
    """The mean over the true pairs of ``-log sigmoid((true - hard) / temperature)``; 0 for a pair without one.

    Args:
        similarity: (B, M) float32, the batch's images and captions.
        image_index: (M,) int64, the image of each caption.
        candidates: (B, K) float32, the images' similarities to the captions that are mined.
        wrong: (B, K) bool, the candidate belongs to another image; nothing else is ever a hard negative.
        rule: ``second`` is the paper's; ``hardest`` is the most similar wrong caption, wherever the true one stands.
    """
    pairs = true_pairs(similarity, image_index)
    top = candidates.masked_fill(~wrong, -torch.inf).topk(min(2, candidates.shape[1]), dim=1).values
    first, second = top[:, 0][image_index], top[:, -1][image_index]
    if rule == "second":
        nothing = torch.full_like(first, -torch.inf)
        hard = torch.where(pairs >= first, first, torch.where(pairs >= second, nothing, second))
    else:
        hard = first
    found = hard > -torch.inf
    gap = torch.where(found, hard, pairs) - pairs
    return torch.where(found, torch.nn.functional.softplus(gap / temperature), 0.0).mean()
