"""Which scores, and how sure of them to be."""

from typing import Literal

from pydantic import Field

from vitcapr.config.base import Section


class MetricsConfig(Section):
    metrics: list[Literal["bleu", "meteor", "rouge_l", "cider", "spice", "diversity"]] = [
        "bleu",
        "meteor",
        "rouge_l",
        "cider",
        "diversity",
    ]
    bootstrap_samples: int = Field(1000, ge=0)
    """Resamples of the images for the 95 % interval; 0 gives no interval."""
    bootstrap_seed: int = Field(0, ge=0)
    scorer_timeout: int = Field(300, ge=1)
    """Seconds after which a silent scorer is stopped with an error."""


class ScoreSettings(Section):
    """What the stages ``score`` and ``ground`` read."""

    metrics: MetricsConfig = MetricsConfig()
    language: str = "en"
