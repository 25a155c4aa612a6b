"""The interface of the rules to an experiment: its validated configuration, its stages and their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vitcapr.config.base import from_here
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.config.reading import parse, read_yaml
from vitcapr.errors import as_user_error
from vitcapr.experiment.checks import not_done, problems
from vitcapr.experiment.figure_rules import FigureRule
from vitcapr.experiment.inputs import Inputs
from vitcapr.experiment.targets import Targets
from vitcapr.pipeline.paths import RESULTS
from vitcapr.pipeline.rule import Stages
from vitcapr.pipeline.stage import each_stage


@dataclass(frozen=True)
class Experiment(Inputs, Targets):
    """A validated configuration and the files of its jobs: names and paths, inputs of jobs, targets."""

    @classmethod
    def from_config(
        cls,
        values: Mapping[str, Any],
        where: object = "config.yaml",
        results: Path = RESULTS,
        *,
        on_cluster: bool = False,
    ) -> "Experiment":
        """The experiment of a configuration. Its results are written to a folder of ``results``.

        Raises:
            UserError: a key is unknown, a value is wrong, sections contradict each other, a file is missing, or a
                checkpoint is not what is asked of it.
        """
        experiment = cls(_parsed(values, where), results, on_cluster)
        if errors := {str(error): error for error in problems(experiment)}:
            raise as_user_error(list(errors.values()))
        return experiment

    @property
    def stages(self) -> Stages:
        """The stages as the rules run them."""
        return Stages(self.config, self.results)

    @property
    def contents(self) -> str:
        """What a run makes, in one line, and what it leaves out, a line each."""
        images = self.dataset.size_line or f"data set {self.config.data.dataset}"
        line = (
            f"{self.name}: {images}; backbones: {len(self.backbones)}, captioners: {len(self.captioners)}, "
            f"retrievers: {len(self.retrievers)}, sets of captions: {len(self.captions_files)}"
        )
        return "\n".join([line, *not_done(self)])

    @cached_property
    def figure_rules(self) -> list[FigureRule]:
        """A rule for every stage that declares a figure; none without a format."""
        if not self.config.figures.formats:
            return []
        return [FigureRule(stage, stage.figure, self) for stage in each_stage() if stage.figure is not None]


def load_experiment(*configfiles: Path) -> Experiment:
    """The experiment of ``configfiles``, merged as Snakemake merges them; without files, that of ``config.yaml``."""
    return Experiment.from_config(read_merged(*configfiles), where=names_of(configfiles))


def read_config(*configfiles: Path) -> ExperimentConfig:
    """The configuration of these files, before the check of the files and checkpoints that it names."""
    return _parsed(read_merged(*configfiles), names_of(configfiles))


def _parsed(values: Mapping[str, Any], where: object) -> ExperimentConfig:
    return parse(ExperimentConfig, expand_grid(values, where), where)


def names_of(configfiles: Sequence[Path]) -> str:
    """The files of a configuration as a message names them, from the working folder on."""
    return ", ".join(map(from_here, configfiles or [Path("config.yaml")]))


def read_merged(*configfiles: Path) -> dict[str, Any]:
    """The values of ``configfiles``, each merged over those before it; without files, those of ``config.yaml``."""
    from snakemake.utils import update_config

    values: dict[str, Any] = {}
    for path in configfiles or (Path("config.yaml"),):
        update_config(values, read_yaml(path))
    return values
