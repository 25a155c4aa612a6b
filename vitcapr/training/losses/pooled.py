"""One pool of positives and one of negatives (Peng 2025, equation 4)."""

from typing import TYPE_CHECKING, ClassVar

from vitcapr.config.objective import Loss, Pairs

if TYPE_CHECKING:
    from torch import Tensor


class Pooled(Loss):
    validates: ClassVar[bool] = True

    def loss(self, pairs: Pairs) -> "Tensor":
        from vitcapr.training.contrastive import pooled_loss

        return pooled_loss(pairs.similarity, pairs.owners, pairs.temperature)


LOSS = Pooled
