"""The stages that score, and the tables of the scores."""

from dataclasses import dataclass
from functools import cached_property

from vitcapr.config.metrics import ScoreSettings
from vitcapr.workflow.captioning import CaptioningStages
from vitcapr.workflow.selection import Selection
from vitcapr.workflow.stage import Stage, Wildcards


@dataclass(frozen=True)
class MetricStages:
    """Captions -> scores -> one tidy table."""

    chosen: Selection
    captioning: CaptioningStages

    @property
    def files(self) -> list[str]:
        grounded = self.captioning.attentive_files("metrics", "grounding.json") if self.chosen.has_objects else []
        return self.captioning.files("metrics", "metrics.json") + grounded

    @cached_property
    def score(self) -> Stage:
        return Stage("score", self._score_settings, incidental=frozenset({"metrics.scorer_timeout"}))

    @cached_property
    def ground(self) -> Stage:
        # Grounding has no scorers of its own to choose: only the bootstrap concerns it.
        return Stage(
            "ground",
            self._score_settings,
            incidental=frozenset({"metrics.scorer_timeout", "metrics.metrics"}),
        )

    @cached_property
    def summary(self) -> Stage:
        return Stage("summary")

    def _score_settings(self, _: Wildcards) -> ScoreSettings:
        return ScoreSettings(metrics=self.chosen.config.metrics, language=self.chosen.config.text.language)
