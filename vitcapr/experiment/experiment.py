"""The interface of the rules to an experiment: its validated configuration, its stages and their files."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vitcapr.config.base import Section, from_here
from vitcapr.config.data import DatasetConfig
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.config.reading import parse, read_yaml
from vitcapr.errors import UserError, as_user_error
from vitcapr.experiment import paths
from vitcapr.experiment.captioning import Captioning
from vitcapr.experiment.checks import not_done, problems
from vitcapr.experiment.models import Models
from vitcapr.experiment.paths import RESULTS
from vitcapr.experiment.retrieval import Retrieval
from vitcapr.experiment.rule import Stages
from vitcapr.experiment.stores import Features
from vitcapr.experiment.targets import Targets
from vitcapr.formats.image_root import LOCATION, write_location
from vitcapr.loader import sections_to_run
from vitcapr.pipeline.stage import find_stage


class Experiment:
    """A validated configuration, and for each subject the names and files of its jobs.

    Attributes:
        config, results: the configuration, and the folder of all results.
        on_cluster: whether the jobs run on other machines, whose GPUs are not seen here.
        dataset: the section of the data set.
        stages: the stages as the rules run them.
    """

    def __init__(self, config: ExperimentConfig, results: Path = RESULTS, on_cluster: bool = False) -> None:
        self.config, self.results, self.on_cluster = config, results, on_cluster
        self.name = config.experiment
        self.dataset: DatasetConfig = getattr(config.data, config.data.dataset)
        self.stages = Stages(config, results)
        self.models = Models(config)
        self.root = self.models.root
        self.features = Features(self.models, results)
        self.captioning = Captioning(self.models, self.features)
        self.retrieval = Retrieval(self.models, self.features)
        self.targets = Targets(self.models, self)

    @classmethod
    def from_config(
        cls,
        values: Mapping[str, Any],
        where: object = "config.yaml",
        results: Path = RESULTS,
        *,
        on_cluster: bool = False,
    ) -> "Experiment":
        """Return the experiment of a configuration. Its results are written to a folder of ``results``.

        Raises:
            UserError: a key is unknown, a value is wrong, sections contradict each other, a file is missing, or a
                checkpoint is not what is asked of it.
        """
        experiment = cls(_parsed(values, where), results, on_cluster)
        if errors := {str(error): error for error in problems(experiment)}:
            raise as_user_error(list(errors.values()))
        return experiment

    @property
    def contents(self) -> str:
        """Describe the products of a run in one line, and everything that it leaves out, a line each."""
        images = self.dataset.size_line or f"data set {self.config.data.dataset}"
        added = {section.replace("_", " "): len(self.models.needed(section)) for section in sections_to_run()}
        listed = "".join(f"{kind}: {number}, " for kind, number in added.items() if number)
        line = (
            f"{self.name}: {images}; backbones: {len(self.models.backbones)}, "
            f"captioners: {len(self.models.captioners)}, retrievers: {len(self.models.retrievers)}, "
            f"{listed}sets of captions: {len(self.captioning.caption_files(paths.CAPTIONS))}"
        )
        return "\n".join([line, *not_done(self)])

    def locate_images(self) -> None:
        """Note where the photographs of a finished data stage lie now: they may have moved since."""
        directory = self.results / self.name / "data"
        if (directory / LOCATION).is_file() and (root := self.dataset.image_root(self.config.data)) is not None:
            write_location(directory, root)

    @property
    def user_files(self) -> dict[str, Path]:
        """The files and folders of the user that must exist before the experiment can run, by their keys."""
        settings = find_stage(self.dataset.stage).settings
        assert settings is not None
        encoders = {name: self.config.text_encoders[name] for name in self.models.text_encoders}
        sections: dict[str, Section] = {"metrics": self.config.metrics}
        sections |= {f"word_vectors.{name}": self.config.word_vectors[name] for name in self.models.word_vectors}
        sections |= {f"text_encoders.{name}": e for name, e in encoders.items() if e.output == "word_vectors"}
        named = {f"{key}.{name}": path for key, section in sections.items() for name, path in section.user_files()}
        return dict(settings.from_config(self.config, None).user_files()) | named


def load_experiment(*configfiles: Path) -> Experiment:
    """Return the experiment of ``configfiles``, merged as Snakemake merges them.

    Without files, the experiment of ``config.yaml``.
    """
    on_cluster = shutil.which("sbatch") is not None
    return Experiment.from_config(read_merged(*configfiles), where=names_of(configfiles), on_cluster=on_cluster)


def read_config(*configfiles: Path) -> ExperimentConfig:
    """Return the configuration of these files, before the check of the files and checkpoints that it names."""
    return _parsed(read_merged(*configfiles), names_of(configfiles))


def _parsed(values: Mapping[str, Any], where: object) -> ExperimentConfig:
    return parse(ExperimentConfig, expand_grid(values, where), where)


def names_of(configfiles: Sequence[Path]) -> str:
    """Return the files of a configuration as a message names them, from the working folder on."""
    return ", ".join(map(from_here, configfiles or [Path("config.yaml")]))


def source_of_configuration(workflow: Any) -> str:
    """Name the files and options that a workflow of Snakemake has its configuration from, for messages.

    Raises:
        UserError: the workflow is a module without a configuration.
    """
    module, outer = workflow.modifier, workflow.modifier.parent_modifier
    if outer is not None and not module.skip_configfile:
        remedy = "give it one in the outer Snakefile, such as config: config"
        raise UserError("the module has no configuration", where=f"module {module.namespace}", remedy=remedy)
    if outer is not None and outer.globals["config"] is not module.globals["config"]:
        source = f"config of the module {module.namespace}"
    else:
        source = names_of([Path(file) for file in workflow.configfiles])
    given = ", ".join(f"{key}={value}" for key, value in workflow.config_settings.config.items())
    return f"{source} with --config {given}" if given else source


def read_merged(*configfiles: Path) -> dict[str, Any]:
    """Return the values of ``configfiles``, each merged over those before it.

    Without files, the values of ``config.yaml``.
    """
    from snakemake.utils import update_config

    values: dict[str, Any] = {}
    for path in configfiles or (Path("config.yaml"),):
        update_config(values, read_yaml(path))
    return values
