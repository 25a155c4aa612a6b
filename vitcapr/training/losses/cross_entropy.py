"""Cross-entropy of the next word (ViTCap-R, equation 1)."""

from typing import TYPE_CHECKING

from pydantic import Field

from vitcapr.config.objective import CaptionerLoss, Words

if TYPE_CHECKING:
    from torch import Tensor


class CrossEntropy(CaptionerLoss):
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """Share of each target's probability that is spread over the vocabulary."""

    def loss(self, words: Words) -> "Tensor":
        from torch.nn.functional import cross_entropy

        return cross_entropy(words.logits, words.targets, label_smoothing=self.label_smoothing)


LOSS = CrossEntropy
