"""Binary classification of every pair (Zhai et al. 2023, SigLIP)."""

from typing import TYPE_CHECKING, ClassVar

from vitcapr.config.objective import Loss, Pairs

if TYPE_CHECKING:
    from torch import Tensor


class Sigmoid(Loss):
    start_bias: ClassVar[float | None] = -10.0  # Zhai et al. 2023, section 3.2

    def loss(self, pairs: Pairs) -> "Tensor":
        from vitcapr.training.contrastive import sigmoid

        assert pairs.bias is not None
        return sigmoid(pairs.similarity, pairs.owners, pairs.temperature, pairs.bias)


LOSS = Sigmoid
