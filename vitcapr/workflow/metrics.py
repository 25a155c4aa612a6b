"""The stages that score, and the tables of the scores."""

from dataclasses import dataclass
from functools import cached_property

from vitcapr.config.metrics import ScoreSettings
from vitcapr.config.retrieval_metrics import RetrievalScoreSettings
from vitcapr.config.spread import SeededModel, SpreadSettings
from vitcapr.metrics.published.numbers import published_files
from vitcapr.workflow.captioning import CaptioningStages
from vitcapr.workflow.matching import MatchingStages
from vitcapr.workflow.names import options
from vitcapr.workflow.retrieval import RetrievalStages
from vitcapr.workflow.selection import RANKED, Selection
from vitcapr.workflow.stage import Stage, Wildcards

_SCORERS = frozenset({"metrics.scorer_timeout", "metrics.metrics"})
"""Settings that concern the scores of captions alone: where there are none, only the bootstrap counts."""


@dataclass(frozen=True)
class MetricStages:
    """Captions -> scores -> one tidy table."""

    chosen: Selection
    captioning: CaptioningStages
    retrieval: RetrievalStages
    matching: MatchingStages

    @property
    def files(self) -> list[str]:
        grounded = self.captioning.attentive_files("metrics", "grounding.json") if self.chosen.has_objects else []
        checked = self.captioning.files("metrics", "facts.json") if self.chosen.checks_claims else []
        return [
            *self.captioning.files("metrics", "metrics.json"),
            *grounded,
            *checked,
            *self.retrieval.files("metrics/retrieval", "metrics.json"),
            *self.pools,
            *self.matching.files,
            *self.retrieval.rescored("metrics/retrieval", "metrics.json"),
        ]

    @cached_property
    def score(self) -> Stage:
        return Stage("score", self._score_settings, incidental=frozenset({"metrics.scorer_timeout"}))

    @cached_property
    def paraphrases(self) -> Stage:
        return Stage("paraphrases", self._score_settings, incidental=frozenset({"metrics"}))

    def paraphrases_of(self, wildcards: Wildcards) -> list[str]:
        """METEOR's paraphrases of the split, where METEOR is wanted."""
        if "meteor" not in self.chosen.config.metrics.metrics:
            return []
        folder = f"{self.chosen.root}/text/paraphrases/{wildcards.split}"
        return [f"{folder}/card.json", f"{folder}/table.gz"]

    def paraphrases_option(self, wildcards: Wildcards) -> str:
        return options("paraphrases", self.paraphrases_of(wildcards)[:1])

    @cached_property
    def ground(self) -> Stage:
        return Stage("ground", self._score_settings, incidental=_SCORERS)

    @cached_property
    def check_facts(self) -> Stage:
        return Stage("check_facts", self._score_settings, incidental=_SCORERS)

    @cached_property
    def score_retrieval(self) -> Stage:
        return self._of_ranks("score_retrieval")

    @cached_property
    def score_pools(self) -> Stage:
        return self._of_ranks("score_pools")

    @cached_property
    def score_languages(self) -> Stage:
        return self._of_ranks("score_languages")

    def _of_ranks(self, module: str) -> Stage:
        return Stage(module, lambda _: RetrievalScoreSettings(metrics=self.chosen.config.metrics), incidental=_SCORERS)

    @property
    def pools(self) -> list[str]:
        """Scores of the queries that pairs set apart, where they are wanted."""
        names = self.chosen.scored if self.chosen.config.run.pools else []
        return [f"{self.chosen.root}/metrics/retrieval/{name}/pools/metrics.json" for name in names]

    @cached_property
    def compare(self) -> Stage:
        return Stage("compare", self._score_settings, incidental=_SCORERS)

    @property
    def comparisons(self) -> list[str]:
        """What is compared: a reranking with its decoding, and a captioner with the one that it starts from."""
        config = self.chosen.config
        started = [
            name for name in self.chosen.captioners if config.captioners[name].start_from in self.chosen.captioners
        ]
        pairs = [
            *((captioner, way) for captioner in self.chosen.captioners for way in self.chosen.rerankings),
            *((captioner, way) for captioner in started for way in self.chosen.decodings),
        ]
        return [
            f"{self.chosen.root}/comparisons/{captioner}/{way}/{split}/comparison.json"
            for captioner, way in pairs
            for split in self.chosen.splits
        ]

    def before(self, wildcards: Wildcards) -> list[str]:
        """The scores of the system that another one is compared with."""
        captioner, way = wildcards.captioner, wildcards.decoding
        if way in self.chosen.rerankings:
            way = self.chosen.config.rerankings[way].decoding
        else:
            captioner = self.chosen.config.captioners[captioner].start_from
        folder = f"{self.chosen.root}/metrics/{captioner}/{way}/{wildcards.split}"
        return [f"{folder}/metrics.json", f"{folder}/per_image.parquet"]

    @cached_property
    def paper_tables(self) -> Stage:
        return Stage("paper_tables", sources=lambda w: {path.name: path for path in published_files(w.paper)})

    @property
    def paper_pages(self) -> list[str]:
        """The tables beside the numbers of a paper, where one is wanted."""
        paper = self.chosen.config.run.paper
        return [] if paper is None else [f"{self.chosen.root}/tables/{paper}/{paper}.md"]

    def cards(self, _: Wildcards) -> list[str]:
        captioners = [f"{self.chosen.root}/captioners/{name}/card.json" for name in self.chosen.trained_captioners]
        return captioners + [
            f"{self.chosen.root}/retrievers/{name}/card.json" for name in self.chosen.needed_retrievers
        ]

    def trainings_option(self, _: Wildcards) -> str:
        """Which models are seeds of one system."""
        named = ((name, self.chosen.system_of(name)) for name in self.chosen.scored)
        return options("training", (f"{name}={system}" for name, system in named if name != system))

    def cards_option(self, wildcards: Wildcards) -> str:
        return options("card", self.cards(wildcards))

    @property
    def ranks(self) -> list[str]:
        return self.retrieval.files("metrics/retrieval", "ranks.npz")

    def ranks_option(self, _: Wildcards) -> str:
        return options("ranks", self.ranks)

    def comparisons_option(self, _: Wildcards) -> str:
        return options("comparison", self.comparisons)

    @cached_property
    def summary(self) -> Stage:
        return Stage("summary")

    @cached_property
    def spread(self) -> Stage:
        return Stage("spread", lambda _: SpreadSettings(models=self._seeded))

    @property
    def spreads(self) -> list[str]:
        """The table of scores over seeds, where any models differ in their seed."""
        groups = [(model.of, model.vary) for model in self._seeded.values()]
        return [f"{self.chosen.root}/tables/spread.md"] if len(set(groups)) < len(groups) else []

    @property
    def _seeded(self) -> dict[str, SeededModel]:
        """The models scored that a grid gave seeds of their own."""
        captioners, ranked = self.chosen.variants("captioners"), self.chosen.variants(*RANKED)
        made = {name: captioners[name] for name in self.chosen.captioners if name in captioners}
        made |= {name: ranked[name] for name in self.chosen.scored if name in ranked}
        seeded = {}
        for name, variant in made.items():
            if isinstance(seed := variant.vary.get("seed"), int):
                vary = variant.without("seed").removeprefix(variant.of).removeprefix("-")
                seeded[name] = SeededModel(of=variant.of, vary=vary, seed=seed)
        return seeded

    def _score_settings(self, _: Wildcards) -> ScoreSettings:
        return ScoreSettings(metrics=self.chosen.config.metrics, language=self.chosen.config.text.language)
