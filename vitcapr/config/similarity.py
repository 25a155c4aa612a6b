"""The encoders by which captions are scored. A module of its own: other scores do not depend on encoders."""

from typing import Any, Literal, Self

from vitcapr.config.features import TextEncoderConfig
from vitcapr.config.metrics import ScoreSettings


class SimilaritySettings(ScoreSettings):
    """The settings of the stage ``score_similarity``."""

    clip: TextEncoderConfig | None = None
    """The text half of the model whose image half made the features."""
    sentences: TextEncoderConfig | None = None
    bert: TextEncoderConfig | None = None
    """The encoder of BERTScore."""
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        metrics = config.metrics
        settings = {"clip": metrics.clip_score, "sentences": metrics.sentence_similarity, "bert": metrics.bert_score}
        encoders = {name: config.text_encoders[by.text_encoder] for name, by in settings.items() if by is not None}
        return cls(metrics=metrics, language=config.text.language, device=config.embed.device, **encoders)
