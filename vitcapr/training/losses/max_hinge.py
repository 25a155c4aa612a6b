"""Hinge loss against the hardest negative caption and image (Faghri et al. 2018, VSE++)."""

from typing import TYPE_CHECKING

from pydantic import Field

from vitcapr.config.objective import Loss, Pairs

if TYPE_CHECKING:
    from torch import Tensor


class MaxHinge(Loss):
    margin: float = Field(0.2, gt=0)
    """Margin of the hinge."""

    def loss(self, pairs: Pairs) -> "Tensor":
        from vitcapr.training.contrastive import max_hinge

        return max_hinge(pairs.similarity, pairs.owners, self.margin)


LOSS = MaxHinge
