"""The interface of the rules to an experiment: its validated configuration, its stages and their files."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vitcapr.config.base import parse
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.config.plain import check_plain
from vitcapr.errors import UserError
from vitcapr.experiment.alignment import AlignmentStages
from vitcapr.experiment.captioning import CaptioningStages
from vitcapr.experiment.configuration import read_merged
from vitcapr.experiment.data import DataStages
from vitcapr.experiment.features import FeatureStages
from vitcapr.experiment.figure_rules import FigureRule
from vitcapr.experiment.finetuning import FinetuningStages
from vitcapr.experiment.first_page import FirstPageStages
from vitcapr.experiment.metrics import MetricStages
from vitcapr.experiment.pairs import PairStages
from vitcapr.experiment.reranking import RerankingStages
from vitcapr.experiment.retrieval import RetrievalStages
from vitcapr.experiment.selection import Selection
from vitcapr.experiment.text import TextStages
from vitcapr.pipeline.paths import RESULTS
from vitcapr.pipeline.rule import Stages
from vitcapr.pipeline.stage import each_stage


@dataclass(frozen=True)
class Experiment:
    """A validated configuration and the file lists of the rules; one attribute for each rule file."""

    config: ExperimentConfig
    results: Path = RESULTS

    @classmethod
    def from_config(
        cls, values: Mapping[str, Any], where: object = "config.yaml", results: Path = RESULTS
    ) -> "Experiment":
        """The experiment of a configuration. Its results are written to a folder of ``results``.

        Raises:
            UserError: a key is unknown, a value is wrong, a named file is missing, or the sections contradict each
                other.
        """
        check_plain(values, where)
        experiment = cls(parse(ExperimentConfig, expand_grid(values, where), where), results)
        experiment._check()
        return experiment

    @property
    def stages(self) -> Stages:
        """The stages as the rules run them."""
        return Stages(self.config, self.results)

    @property
    def manifest(self) -> str:
        """The manifest of the data set."""
        return f"{self.selection.root}/data/manifest.json"

    @cached_property
    def figure_rules(self) -> list[FigureRule]:
        """A rule for every stage that declares a figure."""
        return [FigureRule(stage, stage.figure, self) for stage in each_stage() if stage.figure is not None]

    @cached_property
    def selection(self) -> Selection:
        return Selection(self.config)

    @cached_property
    def data(self) -> DataStages:
        return DataStages(self.config)

    @cached_property
    def text(self) -> TextStages:
        return TextStages(self.selection)

    @cached_property
    def features(self) -> FeatureStages:
        return FeatureStages(self.selection, self.results)

    @cached_property
    def pairs(self) -> PairStages:
        return PairStages(self.selection)

    @cached_property
    def captioning(self) -> CaptioningStages:
        return CaptioningStages(self.selection, self.features, self.text)

    @cached_property
    def retrieval(self) -> RetrievalStages:
        return RetrievalStages(self.selection, self.features, self.text)

    @cached_property
    def alignment(self) -> AlignmentStages:
        return AlignmentStages(self.selection, self.features)

    @cached_property
    def reranking(self) -> RerankingStages:
        return RerankingStages(self.selection, self.features)

    @cached_property
    def finetuning(self) -> FinetuningStages:
        return FinetuningStages(self.selection, self.features)

    @cached_property
    def metrics(self) -> MetricStages:
        return MetricStages(self.selection, self.captioning, self.retrieval, self.finetuning)

    @cached_property
    def first_page(self) -> FirstPageStages:
        return FirstPageStages(self.selection, self.captioning, self.retrieval, self.finetuning, self.trains_backbone)

    @property
    def sealed_stores(self) -> dict[str, str]:
        """The sealed feature stores of images and captions, by their folders below the experiment's."""
        folders = [f"features/{name}" for name in self.selection.backbones]
        folders += [f"text_features/{name}" for name in self.retrieval.text_encoders]
        return {folder: f"{self.selection.root}/{folder}/manifest.json" for folder in folders}

    @property
    def store_reports(self) -> list[str]:
        """The statistics of the stores, if there are any, and the wanted exports of each store."""
        exports = [
            f"{self.selection.root}/{folder}/features.{suffix}"
            for folder in self.sealed_stores
            for suffix in self.config.features.export
        ]
        return [f"{self.selection.root}/tables/feature_statistics.md", *exports] if self.sealed_stores else []

    @property
    def trains_backbone(self) -> bool:
        """Whether a wanted model looks through the backbone that the experiment trains."""
        return any(map(self.selection.is_trained, [*self.selection.backbones, *self.finetuning.pixel_backbones]))

    def _check(self) -> None:
        run = self.config.run
        models = run.captioners or run.retrievers or run.finetuned_dual_encoders or run.loss_curves
        if not (models or run.alignments):
            raise UserError(
                "the experiment names nothing to run",
                where=self.config.experiment,
                remedy="name something under captioners, retrievers, alignments or finetuned_dual_encoders",
            )
        trained = [name for name in self.selection.backbones if self.selection.is_trained(name)]
        if trained and not self.selection.has_objects:
            raise UserError(
                f"backbones.{trained[0]} is to be trained here, which needs pictures whose objects are known",
                where=f"data.dataset: {self.config.data.dataset}",
                remedy="name a hub id or a folder as its source",
            )
        for key, path in self.user_files.items():
            if path.is_dir() and self.results.resolve().is_relative_to(path.resolve()):
                raise UserError(
                    f"{key}: the folder contains the results",
                    where=path,
                    remedy="put the photographs into a folder of their own, because each result would change it",
                )
        for key, path in self.missing_files.items():
            raise UserError(
                f"{key}: no such file or folder",
                where=path,
                remedy="give its path, from here or from the folder that VITCAPR_DATA names",
            )

    @property
    def user_files(self) -> dict[str, Path]:
        """The user's files and folders that the experiment is made from, by their keys in the configuration."""
        files = self.data.files(None)
        for name in self.text.word_vectors:
            files |= self.text.vector_files(name)
        for name in self.retrieval.text_encoders:
            files |= self.retrieval.vector_files(name)
        return files | self.metrics.instance_files(None)

    @property
    def missing_files(self) -> dict[str, Path]:
        return {key: path for key, path in self.user_files.items() if not path.exists()}


def load_experiment(*configfiles: Path) -> Experiment:
    """The experiment of ``configfiles``, merged as Snakemake merges them; without files, that of ``config.yaml``."""
    where = configfiles[-1] if configfiles else "config.yaml"
    return Experiment.from_config(read_merged(*configfiles), where=where)
