"""The size of an experiment before it runs, and by a short trial its time on this machine."""

import importlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.features import BackboneConfig
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import Experiment
from vitcapr.pipeline.paths import can_only_be_a_folder, find_backbone
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import find_stage

BYTES = {"int8": 1, "float16": 2, "float32": 4}


def sizes_of_splits(experiment: Experiment) -> Counter[str]:
    """The number of images of each split, as the configuration and the user's files list them.

    Empty for pairs, which are sampled when they are read.

    Raises:
        UserError: the files cannot be read.
    """
    data = experiment.config.data
    if data.dataset == "scenes":
        from vitcapr.demo.scenes.dataset import split_of

        scenes = data.scenes
        return Counter(split_of(number, scenes.validation, scenes.test)[0] for number in range(scenes.images))
    if data.dataset == "pairs":
        return Counter()
    from vitcapr.data.collect import listed_sizes

    stage = find_stage(experiment.data.stage)
    assert stage.settings is not None
    with importlib.import_module(stage.module).listed(stage.settings.from_config(experiment.config, None)) as (
        _,
        listing,
    ):
        return listed_sizes(listing, getattr(data, data.dataset).limit)


def backbone_lines(experiment: Experiment, images: int) -> Iterator[str]:
    """A line for each backbone: where it is, and how many bytes its features take."""
    config = experiment.config
    for name in experiment.selection.backbones:
        backbone = config.backbones[name]
        if experiment.features.is_adopted(name):
            yield f"backbone {name}: the feature store {backbone.source}"
            continue
        if experiment.selection.is_trained(name):
            trained = config.trained_backbone
            values, place = _trained(experiment), f"trained here on the {images} images, {trained.epochs} epochs"
        else:
            folder = find_backbone(backbone.source)
            values = _checkpoint(folder)
            elsewhere = "is not there" if can_only_be_a_folder(backbone.source) else "of the hub, or in its cache"
            place = str(folder) if folder.is_dir() else f"{backbone.source} {elsewhere}"
        numbers = numbers_per_image(backbone, values)
        size = f"{_bytes(images * numbers * BYTES[backbone.store_dtype])} of features" if numbers and images else ""
        yield f"backbone {name}: {place}; {size or 'size of the features not known yet'}"


def numbers_per_image(backbone: BackboneConfig, checkpoint: Mapping[str, Any]) -> int | None:
    """The numbers that are stored for an image: of a ViT CLS and its patches, for its output and each hidden layer that
    is stored; None for other networks."""
    vision = checkpoint.get("vision_config", checkpoint)
    width, patch = vision.get("hidden_size"), vision.get("patch_size")
    size = backbone.image_size or vision.get("image_size")
    if backbone.output != "hidden" or not all(isinstance(value, int) for value in (width, patch, size)):
        return None
    return int(((size // patch) ** 2 + 1) * width) * (1 + len(backbone.layers or ()))


def _trained(experiment: Experiment) -> dict[str, Any]:
    trained = experiment.config.trained_backbone
    return {
        "hidden_size": trained.hidden_size,
        "patch_size": trained.patch_size,
        "image_size": experiment.config.data.scenes.size,
    }


def _checkpoint(folder: Path) -> dict[str, Any]:
    """config.json of a local checkpoint; empty if there is none."""
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _bytes(number: int) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.1f} MB"


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
