"""The size of an experiment before it runs: images, backbones and bytes of features."""

import importlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vitcapr.config.features import BackboneConfig
from vitcapr.experiment.experiment import Experiment
from vitcapr.pipeline.paths import can_only_be_a_folder, find_backbone
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
