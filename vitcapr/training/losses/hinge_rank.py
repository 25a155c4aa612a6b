"""Hinge loss against every negative caption (Frome et al. 2013, DeViSE)."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from vitcapr.config.objective import Loss, Pairs

if TYPE_CHECKING:
    from torch import Tensor


class HingeRank(Loss):
    unit_images: ClassVar[bool] = False

    margin: float = Field(0.2, gt=0)
    """Margin of the hinge."""

    def loss(self, pairs: Pairs) -> "Tensor":
        from vitcapr.training.contrastive import hinge_rank

        return hinge_rank(pairs.similarity, pairs.owners, self.margin)


LOSS = HingeRank
