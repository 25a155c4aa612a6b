"""Which scores, and how sure of them to be."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from vitcapr.config.base import Section, StageSettings
from vitcapr.modules import modules_in


def _known(name: str) -> str:
    names = modules_in("vitcapr.metrics.captions")
    if name not in names:
        raise ValueError(f"no metric of captions is called '{name}'; there are {', '.join(sorted(names))}")
    return name


class MetricsConfig(Section):
    metrics: list[Annotated[str, AfterValidator(_known)]] = [
        "bleu",
        "meteor",
        "rouge_l",
        "cider",
        "diversity",
    ]
    """Modules of vitcapr.metrics.captions; docs/metrics.md says what each scores."""
    bootstrap_samples: int = Field(1000, ge=0)
    """Resamples of the images for the 95 % interval; 0 gives no interval."""
    bootstrap_seed: int = Field(0, ge=0)
    scorer_timeout: int = Field(300, ge=1)
    """Seconds after which a silent scorer is stopped with an error."""


SCORERS = frozenset({"metrics.scorer_timeout", "metrics.metrics"})
"""Settings that only the scores of captions need: execution only where nothing but the intervals counts."""


class ScoreSettings(StageSettings):
    """What the stages that read captions and references need."""

    metrics: MetricsConfig = MetricsConfig()
    language: str = "en"

    @classmethod
    def of(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        return cls(metrics=config.metrics, language=config.text.language)


class IntervalSettings(StageSettings):
    """What the other stages that score need: the resamples and their seed."""

    metrics: MetricsConfig = MetricsConfig()
