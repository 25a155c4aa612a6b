"""How sure of the scores of retrieval to be."""

from vitcapr.config.base import Section
from vitcapr.config.metrics import MetricsConfig


class RetrievalScoreSettings(Section):
    """What the stage ``score_retrieval`` reads: of the metrics the resamples and their seed."""

    metrics: MetricsConfig = MetricsConfig()
