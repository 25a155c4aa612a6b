"""The size of an experiment before it runs, and by a short trial its time on this machine."""

import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from vitcapr.api.steps import run
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.features import BackboneConfig
from vitcapr.encoders.kinds import read_model_config
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import Experiment
from vitcapr.pipeline.paths import can_only_be_a_folder, find_backbone
from vitcapr.pipeline.stage import find_stage
from vitcapr.progress import format_bytes, format_seconds

BYTES = {"int8": 1, "float16": 2, "float32": 4}


def splits_and_languages(experiment: Experiment) -> tuple[Counter[str], Collection[str] | None]:
    """The number of images of each split that the user's files list, and the languages of their captions.

    No number for pairs, which are sampled when they are read.
    """
    data = experiment.config.data
    section = getattr(data, data.dataset)
    if data.dataset == "scenes":
        from vitcapr.demo.scenes.dataset import split_of

        scenes = data.scenes
        splits = (split_of(number, scenes.validation, scenes.test)[0] for number in range(scenes.images))
        return Counter(splits), section.languages
    if data.dataset == "pairs":
        return Counter(), section.languages
    from vitcapr.data.collect import listed_sizes
    from vitcapr.data.readers import list_data_set

    with list_data_set(data.dataset, section.located().images, **section.located().keys()) as (_, listing):
        spoken = {caption.language or getattr(section, "language", "en") for caption in listing.captions}
        return listed_sizes(listing, section.limit), sorted(spoken)


def backbone_lines(experiment: Experiment, images: int) -> Iterator[str]:
    """A line for each backbone: where it is, and how many bytes its features take."""
    config = experiment.config
    for name in experiment.backbones:
        backbone = config.backbones[name]
        if config.backbones[name].is_adopted:
            yield f"backbone {name}: the feature store {backbone.source}"
            continue
        if experiment.is_trained(name):
            trained = config.trained_backbone
            values = trained.model_dump(include={"hidden_size", "patch_size"}) | {"image_size": config.data.scenes.size}
            place = f"trained here on the {images} images, {trained.epochs} epochs"
        else:
            folder = find_backbone(backbone.source)
            values = read_model_config(folder)
            elsewhere = "is not there" if can_only_be_a_folder(backbone.source) else "of the hub, or in its cache"
            place = str(folder) if folder.is_dir() else f"{backbone.source} {elsewhere}"
        numbers = numbers_per_image(backbone, values)
        size = (
            f"{format_bytes(images * numbers * BYTES[backbone.store_dtype])} of features" if numbers and images else ""
        )
        yield f"backbone {name}: {place}; {size or 'size of the features not known yet'}"


def numbers_per_image(backbone: BackboneConfig, checkpoint: Mapping[str, Any]) -> int | None:
    """The numbers that are stored for an image: of a ViT CLS and its patches, for its output and each hidden layer that
    is stored; None for other networks."""
    vision = checkpoint.get("vision_config", checkpoint)
    width, patch = vision.get("hidden_size"), vision.get("patch_size")
    size = backbone.image_size or vision.get("image_size")
    if backbone.output != "hidden" or not all(isinstance(value, int) for value in (width, patch, size)):
        return None
    side = {"all": size // patch, "none": 0}.get(str(backbone.patches), backbone.patches)
    return int((side**2 + 1) * width) * (1 + len(backbone.layers or ()))


IMAGES = 64


def trial_lines(experiment: Experiment, sizes: Counter[str]) -> Iterator[str]:
    """A line for each long stage: its time on ``IMAGES`` images, and the time of the whole by proportion.

    The long stages are the check of the images, the extraction of features and the training of captioners.
    """
    if experiment.data_stage == "data_pairs":
        raise UserError(
            "a trial needs a data set with a limit", where="data.dataset: pairs", remedy="leave out --trial"
        )
    if experiment.trained("backbones"):
        raise UserError(
            "a trial needs a backbone that is trained already",
            where=experiment.name,
            remedy="leave out --trial, or name a hub id or a folder as the source",
        )
    import torch  # noqa: F401  (the time of this import is no part of a stage)

    from vitcapr.formats.manifest import read_manifest

    config = _limited(experiment.config)
    with tempfile.TemporaryDirectory(prefix="vitcapr-trial-") as name:
        folder = Path(name)
        manifest, stores = folder / "data" / "manifest.json", folder / "stores"
        text = {"vocabulary": folder / "words.json", "tokens": folder / "tokens.npz"}
        seconds = _run(experiment.data_stage, _settings(experiment.data_stage, config), folder=manifest.parent)
        _run("vocabulary", _settings("vocabulary", config), manifest=manifest, **text)
        small = Counter(read_manifest(manifest).image_table.column("split").tolist())
        share = sizes.total() / small.total()
        expected = [seconds * share]
        yield f"images read: {format_seconds(expected[0])}"
        for backbone in experiment.extracted:
            part, sealed = folder / backbone / "part.json", folder / backbone / "manifest.json"
            source = find_backbone(config.backbones[backbone].source)
            settings = _settings("extract", config, backbone=backbone)
            local = {"backbone": source} if source.is_dir() else {}
            expected.append(share * _run("extract", settings, manifest=manifest, stores=stores, part=part, **local))
            _run("seal", _settings("seal", config), parts=[part], manifest=manifest, stores=stores, sealed=sealed)
            yield f"features of {backbone}: {format_seconds(expected[-1])}"
        for model in experiment.trained_captioners:
            backbone = config.captioners[model].backbone
            if config.backbones[backbone].is_adopted:
                continue
            settings = _settings("train_captioner", config, captioner=model)
            settings["captioner"] |= {"word_vectors": None, "start_from": None}
            phases, expected = settings["captioner"]["training"]["phases"], [*expected, 0.0]
            for number, phase in enumerate(phases):
                settings["captioner"]["training"]["phases"] = [phase | {"epochs": 1}]
                target = folder / "captioners" / f"{model}.{number}"
                inputs = {"features": folder / backbone / "manifest.json", "manifest": manifest, **text}
                seconds = _run("train_captioner", settings, **inputs, captioner=target)
                expected[-1] += seconds * phase["epochs"] * sizes["train"] / small["train"]
            yield f"training of {model}: {format_seconds(expected[-1])}"
        yield (
            f"together about {format_seconds(sum(expected))} as busy as this machine is now, by a trial on "
            f"{small.total()} images; without retrievers, captions and scores"
        )


def _settings(stage: str, config: ExperimentConfig, **wildcards: str) -> dict[str, Any]:
    settings = find_stage(stage).settings
    return {} if settings is None else settings.from_config(config, SimpleNamespace(**wildcards)).canonical()


def _run(stage: str, settings: dict[str, Any], **values: Any) -> float:
    """The seconds of a stage."""
    begun = time.monotonic()
    run(stage, settings, **values)
    return time.monotonic() - begun


def _limited(config: ExperimentConfig) -> ExperimentConfig:
    """The experiment on a few images, whose rare words count too."""
    data = config.data
    section = getattr(data, data.dataset)
    few = section.model_copy(update={"images" if data.dataset == "scenes" else "limit": IMAGES})
    vocabulary = config.text.vocabulary.model_copy(update={"min_count": 1})
    text = config.text.model_copy(update={"vocabulary": vocabulary})
    return config.model_copy(update={"data": data.model_copy(update={data.dataset: few}), "text": text})
