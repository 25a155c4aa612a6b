"""The size of an experiment before it runs."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from vitcapr.config.features import BackboneConfig
from vitcapr.config.names import ADOPTED, find_backbone
from vitcapr.encoders.kinds import read_model_config
from vitcapr.experiment.experiment import Experiment
from vitcapr.formats.store_manifest import IDENTITIES, read_sealed
from vitcapr.pipeline.paths import can_only_be_a_folder, find_store
from vitcapr.progress import format_bytes

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
    from vitcapr.data.collect import Checks, listed_sizes
    from vitcapr.data.readers import list_data_set

    with list_data_set(data.dataset, section.located().images, **section.located().keys()) as (source, listing):
        if listing.note:
            print(listing.note)
        languages = listing.captions["language"].fillna("en").unique()
        return listed_sizes(listing, source.root, data.to(Checks), section.limit), sorted(languages)


def backbone_lines(experiment: Experiment, images: int) -> Iterator[str]:
    """A line for each backbone: where it is, and how many bytes its features take."""
    config = experiment.config
    for name in experiment.backbones:
        backbone = config.backbones[name]
        if config.backbones[name].is_adopted:
            yield f"backbone {name}: {describe_store(experiment, backbone.source)}"
            continue
        if experiment.is_trained(name):
            trained = config.trained_backbone
            values = trained.model_dump(include={"hidden_size", "patch_size"}) | {"image_size": config.data.scenes.size}
            place = f"trained here on the {images:,} images, {trained.epochs} epochs"
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


def text_encoder_lines(experiment: Experiment) -> Iterator[str]:
    """A line for each text encoder whose features are a store."""
    for name in experiment.adopted_texts:
        yield f"text encoder {name}: {describe_store(experiment, experiment.config.text_encoders[name].source)}"


def describe_store(experiment: Experiment, source: str) -> str:
    """What is known of the store that is a source: its rows, its arrays with their widths, who made it."""
    path = find_store(source.removeprefix(ADOPTED), experiment.results)
    if not path.is_file():
        return f"the feature store {source} is not there ({path})"
    sealed = read_sealed(path)
    made, identity = sealed["attributes"], next(name for name in IDENTITIES if name in sealed)
    arrays = [f"{name} {' x '.join(map(str, array['shape'][1:]))}" for name, array in sealed["arrays"].items()]
    grid = f", grid {sealed['grid'][0]} x {sealed['grid'][1]}" if "grid" in sealed else ""
    by = "imported as" if "imported" in made else f"weights {(made.get('weights_sha256') or 'unknown')[:16]}, of"
    rows = f"{sealed[identity]['shape'][0]} {identity.removesuffix('_id')}s"
    return f"the feature store {source}: {rows}, {', '.join(arrays)}{grid}; {by} {made.get('backbone', 'unknown')}"


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
