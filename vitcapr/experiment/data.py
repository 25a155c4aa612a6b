"""The user's files that the data-set stage of an experiment reads."""

from dataclasses import dataclass
from pathlib import Path

from vitcapr.config.dataset import DataSettings
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.pipeline.stage import find_stage


@dataclass(frozen=True)
class DataStages:
    """Pictures and captions -> one manifest, by the stage ``data_<name of the data set>``."""

    config: ExperimentConfig

    @property
    def stage(self) -> str:
        """The name of the stage that reads the data set."""
        return f"data_{self.config.data.dataset}"

    def files(self, wildcards: object) -> dict[str, Path]:
        """By their keys in the configuration."""
        settings = find_stage(self.stage).settings
        assert settings is not None
        assert issubclass(settings, DataSettings)
        return settings.from_config(self.config, wildcards).sources()
