"""The files that an experiment asks for, and the lists of them that its tables read."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from vitcapr.config.experiment import unique
from vitcapr.experiment import paths
from vitcapr.experiment.models import TEST, Part
from vitcapr.loader import ask

if TYPE_CHECKING:
    from vitcapr.experiment.experiment import Experiment


@dataclass(frozen=True)
class Targets(Part):
    """The targets of the rules ``all``, ``captions``, ``metrics`` and others; extensions add theirs."""

    experiment: "Experiment"

    def weights(self, section: str, names: Iterable[str]) -> list[str]:
        return self.every(paths.WEIGHTS, section=[section], model=names)

    @property
    def metrics(self) -> list[str]:
        """The scores that ``summary.csv`` joins."""
        models, captions, every = self.models, self.experiment.captioning.caption_files, self.every
        splits = self.models.splits
        pooled = models.scored if self.config.run.pools else []
        return [
            *captions(paths.CAPTION_SCORES),
            *ask("scores", self.experiment),
            *(captions(paths.SIMILARITY) if models.scoring_encoders else []),
            *every(paths.RETRIEVAL_SCORES, scored=models.ranked, split=splits),
            *every(paths.POOL_SCORES, scored=pooled),
            *every(paths.LANGUAGE_SCORES, polyglot=models.polyglots, split=splits),
            *every(paths.RETRIEVAL_SCORES, scored=models.querybank_scores, split=splits),
        ]

    @property
    def cards(self) -> list[str]:
        sections = self.models.trained_sections
        return [
            path for each in sections for path in self.every(paths.CARD, section=[each], model=self.models.needed(each))
        ]

    @property
    def comparisons(self) -> list[str]:
        """The comparisons: each reranking with its decoding, and each captioner with the one that it starts from."""
        models, captioners = self.models, self.models.captioners
        started = [name for name in captioners if self.config.captioners[name].start_from in captioners]
        pairs = [*product(captioners, models.rerankings), *product(started, models.decodings)]
        return [
            self.path(paths.COMPARISON, captioner=captioner, decoding=source, split=split)
            for (captioner, source), split in product(pairs, models.splits)
        ]

    @property
    def spreads(self) -> list[str]:
        """The table of scores over seeds, where models differ in their seed."""
        groups = [(model.of, model.vary) for model in self.models.seeded.values()]
        return [self.path(paths.SPREAD_TABLE)] if len(set(groups)) < len(groups) else []

    @property
    def tables(self) -> list[str]:
        """Everything but metrics and figures."""
        run, stores = self.config.run, self.experiment.features.sealed_stores
        if self.models.data_alone:
            return [self.path(paths.MANIFEST)]
        return [
            *map(self.path, (paths.SUMMARY, paths.SCORE_TABLE)),
            *self.comparisons,
            *([self.path(paths.DIFFERENCE_TABLE)] if self.differences else []),
            *self.spreads,
            *([self.path(paths.ABLATION_TABLE)] if run.ablations else []),
            *ask("tables", self.experiment),
            *([self.path(paths.STATISTICS_TABLE)] if stores else []),
        ]

    @property
    def figures(self) -> list[str]:
        """The pictures that a run draws."""
        if not self.config.figures.formats or self.models.data_alone:
            return []
        return [
            self.path(file, **wildcards)
            for patterns, wildcards in ask("figures", self.experiment)
            for file in self.in_formats(patterns)
        ]

    def in_formats(self, patterns: str | Iterable[str]) -> list[str]:
        """Return the files of a figure in every format, from paths without its ending.

        The rules of an experiment without figures have pictures as well, which no target asks for.
        """
        files = [patterns] if isinstance(patterns, str) else patterns
        formats = unique(self.config.figures.formats) or ["png"]
        return [f"{file}.{suffix}" for file in files for suffix in formats]

    @property
    def compared_ranks(self) -> dict[str, str]:
        """The ranks of the retrieval models of the first page."""
        ranked = self.models.representatives(self.models.ranked)
        return {name: self.path(paths.RANKS, scored=name, split=self.page_split) for name in ranked}

    @property
    def differences(self) -> list[str]:
        """The paired differences, where there are any."""
        some = self.compared["comparisons"] or len(self.compared_ranks) > 1
        return [self.path(paths.DIFFERENCES)] if some else []

    @property
    def compared(self) -> dict[str, list[str]]:
        """The files of the paired differences, by the stage's parameters."""
        comparisons = [path for path in self.comparisons if f"/{self.page_split}/" in path]
        return {"comparisons": comparisons, "ranks": list(self.compared_ranks.values())}

    @property
    def page_split(self) -> str:
        """The split that the first page shows."""
        return TEST if TEST in self.models.splits else self.models.splits[0]
