"""The feature stores of an experiment, what each holds, and the backbones that it trains."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from vitcapr.config.base import ADOPTED, find_backbone
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.features import TRAINED, BackboneConfig, TextEncoderConfig
from vitcapr.encoders.checkpoint_kinds import OUTPUTS, image_kind, read_model_config
from vitcapr.errors import UserError
from vitcapr.experiment import paths
from vitcapr.experiment.models import Part
from vitcapr.experiment.paths import RESULTS, find_store, stores_root
from vitcapr.experiment.rule import Wildcards
from vitcapr.formats.kinds import BACKBONE_FILES
from vitcapr.formats.store_manifest import SCALE, arrays_of_layer, read_sealed
from vitcapr.loader import ask

NO_GRID = (0, 0)


class Stored(NamedTuple):
    """The features of one image.

    Attributes:
        shapes: of each array, (D,) or (P, D); empty where the checkpoint does not tell.
        grid: rows and columns of the patches; (0, 0) if they have no place in the picture; None: not known.
    """

    shapes: dict[str, tuple[int, ...]]
    grid: tuple[int, int] | None


@dataclass(frozen=True)
class Features(Part):
    """Features of images and captions; ``results`` is the folder of all results."""

    results: Path = RESULTS

    @cached_property
    def stored(self) -> dict[str, Stored]:
        """Contents of the store of each backbone."""
        return {name: stored_by(self.config, name, self.results) for name in self.models.backbones}

    def sealed(self, backbone: str) -> str:
        """Return the sealed image features of a backbone."""
        return self.path(paths.FEATURES, backbone=backbone)

    def sealed_views(self, backbones: Iterable[str]) -> list[str]:
        return list(map(self.sealed, backbones))

    def text_features(self, encoder: str | None) -> list[str]:
        return [] if encoder is None else [self.path(paths.TEXT_FEATURES, encoder=encoder)]

    def parts(self, wildcards: Wildcards) -> list[str]:
        """Return the parts of an extraction that several jobs share."""
        tasks = range(self.config.features.tasks)
        return [self.path(paths.PART, backbone=wildcards.backbone, task=task) for task in tasks]

    def adopted_store(self, encoder: BackboneConfig | TextEncoderConfig) -> str:
        """Return the sealed manifest of the store that is the source of an encoder."""
        return str(find_store(encoder.source.removeprefix(ADOPTED), self.results))

    def stores(self, _: Wildcards) -> str:
        """Return the folder of all stores."""
        return str(stores_root(self.results))

    def trained_backbone(self, name: str) -> list[str]:
        """Return the files of a backbone, if the experiment trains it."""
        folder = self.path(paths.TRAINED_BACKBONE)
        return [f"{folder}/{file}" for file in BACKBONE_FILES] if self.models.is_trained(name) else []

    def clip_features(self, _: Wildcards) -> list[str]:
        """Return the image features of CLIPScore."""
        clip = self.config.metrics.clip_score
        return [] if clip is None else [self.sealed(clip.backbone)]

    @property
    def sealed_stores(self) -> dict[str, str]:
        """The sealed feature stores of images and captions, by their folders below the experiment's."""
        images = {f"features/{name}": self.sealed(name) for name in self.models.backbones}
        texts = {
            f"text_features/{name}": self.path(paths.TEXT_FEATURES, encoder=name) for name in self.models.text_encoders
        }
        return images | texts


def stored_by(config: ExperimentConfig, name: str, results: Path) -> Stored:
    """Return the contents of the store of the backbone ``name``.

    Raises:
        UserError: the store that is its source is not there, or the network has fewer patches than are to be stored.
    """
    backbone = config.backbones[name]
    if backbone.is_adopted:
        path = find_store(backbone.source.removeprefix(ADOPTED), results)
        if not path.is_file():
            remedy = "give the path of a store, or its name in VITCAPR_STORES or results/stores"
            raise UserError(f"backbones.{name}: no such feature store", where=path, remedy=remedy)
        sealed = read_sealed(path)
        arrays = {array: tuple(each["shape"][1:]) for array, each in sealed["arrays"].items()}
        shapes = {array: shape for array, shape in arrays.items() if not array.endswith(SCALE)}
        rows, columns = sealed.get("grid", NO_GRID)
        return Stored(shapes, (rows, columns))
    if backbone.source == TRAINED:
        return _extracted(name, backbone, "vit", dict(ask("trained_backbone", config)))
    folder = find_backbone(backbone.source)
    checkpoint = read_model_config(folder)
    kind = backbone.kind if backbone.kind != "auto" or not checkpoint else image_kind(folder)
    return _extracted(name, backbone, kind, checkpoint.get("vision_config", checkpoint))


def _extracted(name: str, backbone: BackboneConfig, kind: str, vision: Mapping[str, Any]) -> Stored:
    """Return the contents that extraction will write; ``kind`` is auto for a checkpoint that is not here."""
    if backbone.output != "hidden":
        with_patches = backbone.output == "qformer" or kind not in OUTPUTS or kind == "blip-2"
        return Stored({"cls": (), "patches": ()} if with_patches else {"cls": ()}, NO_GRID)
    sizes = vision.get("hidden_size"), vision.get("patch_size"), backbone.image_size or vision.get("image_size")
    width, patch, size = sizes if all(isinstance(each, int) for each in sizes) else (None, None, None)
    side = None if size is None or patch is None else size // patch
    if isinstance(backbone.patches, int):
        if side is not None and side < backbone.patches:
            what = f"backbones.{name}.patches: {backbone.patches}, but the network has {side} x {side} patches"
            raise UserError(what, where=backbone.source, remedy=f"set patches to at most {side}")
        side = backbone.patches
    shapes: list[tuple[int, ...]] = [() if width is None else (width,)]
    if backbone.patches != "none":
        shapes.append(() if width is None or side is None else (side**2, width))
    names = [("cls", "patches"), *map(arrays_of_layer, backbone.layers or ())]
    arrays = {array: shape for both in names for array, shape in zip(both, shapes, strict=False)}
    return Stored(arrays, None if side is None else (side, side))
