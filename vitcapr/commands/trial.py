"""How long an experiment takes on this machine, by a short trial: its long stages on a few images."""

import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from vitcapr.config.experiment import ExperimentConfig
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import Experiment
from vitcapr.pipeline.paths import find_backbone
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import find_stage

IMAGES = 64


def trial_lines(experiment: Experiment, sizes: Counter[str]) -> Iterator[str]:
    """A line for each long stage: its time on ``IMAGES`` images, and the time of the whole by proportion.

    The long stages are the check of the images, the extraction of features and the training of captioners.

    Args:
        sizes: the number of images of each split.

    Raises:
        UserError: the data set is one of pairs, or a backbone is trained by the experiment itself.
    """
    if experiment.data.stage == "data_pairs":
        raise UserError(
            "a trial needs a data set with a limit", where="data.dataset: pairs", remedy="leave out --trial"
        )
    if experiment.trains_backbone:
        raise UserError(
            "a trial needs a backbone that is trained already",
            where=experiment.selection.name,
            remedy="leave out --trial, or name a hub id or a folder as the source",
        )
    import torch  # noqa: F401  (the time of this import is no part of a stage)

    with tempfile.TemporaryDirectory(prefix="vitcapr-trial-") as folder:
        trial = _Trial(experiment, Path(folder))
        small = trial.read_data()
        share = sizes.total() / small.total()
        expected = [trial.seconds * share]
        yield f"images read: {_spelled(expected[0])}"
        for name in experiment.features.extracted:
            trial.extract(name)
            expected.append(trial.seconds * share)
            yield f"features of {name}: {_spelled(expected[-1])}"
        for name in experiment.selection.trained_captioners:
            if experiment.features.is_adopted(experiment.config.captioners[name].backbone):
                continue
            expected.append(trial.train(name) * sizes["train"] / small["train"])
            yield f"training of {name}: {_spelled(expected[-1])}"
        yield (
            f"together about {_spelled(sum(expected))} as busy as this machine is now, by a trial on {small.total()} "
            "images; without retrievers, captions and scores"
        )


class _Trial:
    """The stages of an experiment in a temporary folder.

    Attributes:
        seconds: the time of the last stage.
    """

    def __init__(self, experiment: Experiment, folder: Path) -> None:
        self.experiment = experiment
        self.folder = folder
        self.seconds = 0.0
        self.config = _limited(experiment.config)
        self.manifest = folder / "data" / "manifest.json"

    def read_data(self) -> Counter[str]:
        """Write the manifest of a few images, and their vocabulary. Returns the number of images of each split."""
        from vitcapr.formats.manifest import read_manifest

        self._run(self.experiment.data.stage, None, folder=self.manifest.parent)
        seconds = self.seconds
        text = {name: self.folder / file for name, file in (("vocabulary", "words.json"), ("tokens", "tokens.npz"))}
        self._run("vocabulary", None, manifest=self.manifest, **text)
        self.seconds = seconds
        return Counter(read_manifest(self.manifest).images["split"].tolist())

    def extract(self, name: str) -> None:
        part, stores = self.folder / name / "part.json", self.folder / "stores"
        source = find_backbone(self.config.backbones[name].source)
        given = {"backbone": source} if source.is_dir() else {}
        wildcards = SimpleNamespace(backbone=name)
        self._run("extract", wildcards, manifest=self.manifest, stores=stores, part=part, **given)
        seconds = self.seconds
        sealed = self._features(name)
        self._run("seal", wildcards, parts=[part], manifest=self.manifest, stores=stores, sealed=sealed)
        self.seconds = seconds

    def train(self, name: str) -> float:
        """The seconds of all epochs, from one epoch of each phase."""
        stage = find_stage("train_captioner")
        assert stage.settings is not None
        settings = stage.settings.from_config(self.config, SimpleNamespace(captioner=name)).canonical()
        captioner = settings["captioner"] | {"word_vectors": None, "start_from": None}
        training = captioner["training"]
        seconds = 0.0
        for number, phase in enumerate(training["phases"]):
            one = captioner | {"training": training | {"phases": [phase | {"epochs": 1}]}}
            self._run_with(
                "train_captioner",
                settings | {"captioner": one},
                features=self._features(captioner["backbone"]),
                manifest=self.manifest,
                vocabulary=self.folder / "words.json",
                tokens=self.folder / "tokens.npz",
                captioner=self.folder / "captioners" / f"{name}.{number}",
            )
            seconds += self.seconds * phase["epochs"]
        return seconds

    def _features(self, backbone: str) -> Path:
        return self.folder / backbone / "manifest.json"

    def _run(self, name: str, wildcards: Any, **values: Any) -> None:
        settings = find_stage(name).settings
        self._run_with(
            name, {} if settings is None else settings.from_config(self.config, wildcards).canonical(), **values
        )

    def _run_with(self, name: str, settings: dict[str, Any], **values: Any) -> None:
        begun = time.monotonic()
        given: dict[str, Any] = {"settings": json.dumps(settings)} if settings else {}
        run_stage(find_stage(name), **given, **values)
        self.seconds = time.monotonic() - begun


def _limited(config: ExperimentConfig) -> ExperimentConfig:
    """The experiment on a few images, whose rare words count too."""
    data = config.data
    section = getattr(data, data.dataset)
    few = section.model_copy(update={"images" if data.dataset == "scenes" else "limit": IMAGES})
    vocabulary = config.text.vocabulary.model_copy(update={"min_count": 1})
    text = config.text.model_copy(update={"vocabulary": vocabulary})
    return config.model_copy(update={"data": data.model_copy(update={data.dataset: few}), "text": text})


def _spelled(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
