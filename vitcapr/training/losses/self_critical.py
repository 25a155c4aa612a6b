"""Policy gradient of the CIDEr-D of drawn captions (Rennie et al. 2017)."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from vitcapr.config.objective import CaptionerLoss, TrainingCaptions

if TYPE_CHECKING:
    from vitcapr.training.reward import SelfCritical as Drawn


class SelfCritical(CaptionerLoss):
    rewards: ClassVar[bool] = True

    samples: int = Field(5, ge=2)
    """Captions drawn for each image."""
    temperature: float = Field(1.0, ge=1e-6, le=1e6)
    """Temperature of the draws. Below 1, samples are closer to the captions of beam search."""

    def draw(self, captions: TrainingCaptions) -> "Drawn":
        from vitcapr.training.reward import CiderReward
        from vitcapr.training.reward import SelfCritical as Drawn

        reward = CiderReward(captions.tokens, captions.rows, len(captions.vocabulary))
        limits = {"max_length": captions.max_length, **captions.vocabulary.special_tokens()}
        return Drawn(reward, samples=self.samples, temperature=self.temperature, **limits)


LOSS = SelfCritical
