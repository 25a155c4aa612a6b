"""InfoNCE in both directions (Radford et al. 2021)."""

from typing import TYPE_CHECKING

from vitcapr.config.objective import Loss, Pairs

if TYPE_CHECKING:
    from torch import Tensor


class InfoNce(Loss):
    def loss(self, pairs: Pairs) -> "Tensor":
        from vitcapr.training.contrastive import info_nce

        return info_nce(pairs.similarity, pairs.owners, pairs.temperature)


LOSS = InfoNce
