"""Rows of a store computed again: by its own recipe, and by recipes that differ from it in one thing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from vitcapr.data.images import ImageSource
from vitcapr.encoders.base import blocks
from vitcapr.encoders.checkpoints import locate, weights_digest
from vitcapr.encoders.kinds import MODULES
from vitcapr.encoders.photographs import PhotographEncoder, load_described, preprocessing_of
from vitcapr.encoders.precision import DTYPES
from vitcapr.encoders.preprocess import CLIP_STATISTICS, IMAGENET_STATISTICS, INTERPOLATIONS, Preprocessing
from vitcapr.encoders.staging import to_device
from vitcapr.encoders.text_encoders import POOLS, TextEncoder, TextRecipe
from vitcapr.encoders.text_towers import load_modules, read_published
from vitcapr.formats.containers import TableFile
from vitcapr.store.image_rows import Pixels
from vitcapr.store.layout import TEXT

Arrays = dict[str, np.ndarray]
"""The arrays of some rows, rounded as in the store."""
Compute = Callable[[np.ndarray], Arrays]
_PICTURES_AT_ONCE = 16
_PROMPTS = ("query: ", "passage: ", "a photo of ")
_LENGTHS = (8, 16, 32, 64, 77, 128, 256, 512)


class ImageRecipes:
    """The recipe of features of images, and others; ``weights`` is the digest of the checkpoint that is used.

    Args:
        attributes: of the store.
        images: the table of the images.
        source: hub id or folder of the backbone.
    """

    def __init__(
        self, attributes: Mapping[str, Any], images: TableFile, files: ImageSource, source: str, device: torch.device
    ) -> None:
        self._attributes, self._images, self._files, self._device = attributes, images, files, device
        self._folder = locate(source, attributes["revision"] or "main").folder
        self.weights, self._preprocessing = weights_digest(self._folder), preprocessing_of(attributes)
        self._backbone = self._load(attributes.get("layers", ()), attributes["dtype"])

    def _load(self, layers: Sequence[int], dtype: str) -> Any:
        described = {**self._attributes, "dtype": dtype}
        return load_described(self._folder, described, self._preprocessing, self._device, layers)

    def _compute(self, preprocessing: Preprocessing | None = None, backbone: Any = None) -> Compute:
        chosen = preprocessing or self._preprocessing
        encoder = PhotographEncoder(chosen, backbone or self._backbone, self._attributes["store_dtype"])
        pixels = Pixels(self._images, self._files, chosen)

        def compute(rows: np.ndarray) -> Arrays:
            batches = np.split(rows, range(_PICTURES_AT_ONCE, len(rows), _PICTURES_AT_ONCE))
            parts = [encoder.features(to_device(each, self._device)) for each in pixels.decoded(batches, self._device)]
            return {name: torch.cat([part[name] for part in parts]).cpu().numpy() for name in parts[0]}

        return compute

    def own(self, rows: np.ndarray) -> Arrays:
        return self._compute()(rows)

    def others(self) -> Iterator[tuple[str, Compute]]:
        """Yield other recipes, each with a function that computes its rows."""
        for name, preprocessing in _preprocessings(self._preprocessing):
            yield name, self._compute(preprocessing)
        layers, own = self._attributes.get("layers", ()), self._attributes["dtype"]
        for dtype in DTYPES:
            if dtype != own:
                yield f"arithmetic in {dtype}", partial(self._loaded, layers, dtype)
        if "patches" in self._backbone.shapes and self._attributes["output"] == "hidden":
            yield "cls is the mean of the patches", _renamed(self._compute(), lambda _: "patches")
            layers = range(1, len(blocks(self._backbone.model) or ()) + 1)
            every: Arrays = {}

            def compute(rows: np.ndarray) -> Arrays:
                """Return all layers in one forward pass; every caller has the same rows."""
                if not every:
                    every.update(self._loaded(layers, own, rows))
                return every

            for layer in layers:
                yield f"layer {layer}", _renamed(compute, partial(_at_layer, f"_{layer}"))
            yield "the output instead of a layer", _renamed(compute, partial(_at_layer, ""))

    def _loaded(self, layers: Sequence[int], dtype: str, rows: np.ndarray) -> Arrays:
        return self._compute(backbone=self._load(layers, dtype))(rows)


def _at_layer(suffix: str, name: str) -> str:
    return name.partition("_")[0] + suffix


def _renamed(compute: Compute, rename: Callable[[str], str]) -> Compute:
    """Another array instead of each; of patches that take the place of a vector, their mean."""

    def renamed(rows: np.ndarray) -> Arrays:
        arrays = compute(rows)
        chosen = {name: arrays[other] for name in arrays if (other := rename(name)) in arrays}
        return {
            name: array.mean(1) if name.startswith("cls") and array.ndim == 3 else array
            for name, array in chosen.items()
        }

    return renamed


def _preprocessings(own: Preprocessing) -> Iterator[tuple[str, Preprocessing]]:
    """Yield the preprocessings that differ from ``own`` in one step."""
    yield "not mirrored" if own.mirror else "mirrored", replace(own, mirror=not own.mirror)
    yield "RGB instead of BGR" if own.bgr else "BGR instead of RGB", replace(own, bgr=not own.bgr)
    for interpolation in INTERPOLATIONS:
        yield f"resized with {interpolation} interpolation", replace(own, interpolation=interpolation)
    yield "stretched without a crop", replace(own, resize=own.size, crop=None)
    for share in (1.0, 0.95, 0.9, 0.875):
        edge = round(min(own.size) / share)
        yield f"shorter side resized to {edge}, then cropped", replace(own, resize=(edge,), crop=own.size)
    grey = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    known = {"ImageNet's": IMAGENET_STATISTICS, "CLIP's": CLIP_STATISTICS, "one half as": grey}
    for name, (mean, std) in known.items():
        yield f"{name} mean and standard deviation", replace(own, mean=mean, std=std)
    yield "pixels not normalised", replace(own, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    yield "pixels from 0 to 255", replace(own, scale=1.0)


class CaptionRecipes:
    """The same of features of captions; ``source`` is the hub id or folder of the text encoder."""

    def __init__(self, attributes: Mapping[str, Any], captions: TableFile, source: str, device: torch.device) -> None:
        self._captions, self._store_dtype = captions, DTYPES[attributes["store_dtype"]]
        stated = {name: attributes[name] for name in ("output", "dtype", "max_length")}
        stated |= {name: attributes.get(name) for name in ("prompt",)}
        stated |= {"revision": attributes["revision"] or "main", "pool": attributes["pool"] or "auto"}
        self._stated, self._source, self._device = stated, source, device
        recipe = TextRecipe(source, device, **stated)
        self.weights, self._encoder = recipe.attributes["weights_sha256"], recipe.load()
        self._folder = recipe.checkpoint.folder

    def _compute(self, encoder: Any, change: Callable[[str], str] = lambda text: text) -> Compute:
        def compute(rows: np.ndarray) -> Arrays:
            texts = map(change, self._captions.rows(rows, "text")["text"])
            return {TEXT: torch.from_numpy(encoder.encode(list(texts))).to(self._store_dtype).float().numpy()}

        return compute

    def own(self, rows: np.ndarray) -> Arrays:
        return self._compute(self._encoder)(rows)

    def others(self) -> Iterator[tuple[str, Compute]]:
        own = self._encoder
        yield "captions in lower case", self._compute(own, str.lower)
        if not isinstance(own, TextEncoder):
            return
        if own.lowercase:
            yield "captions not in lower case", self._compute(_changed(own, lowercase=False))
        for prompt in dict.fromkeys(["", *read_published(self._folder).prompts.values(), *_PROMPTS]):
            if prompt != own.prompt:
                name = f"prompt '{prompt}'" if prompt else "no prompt"
                yield name, self._compute(_changed(own, prompt=prompt))
        for length in _LENGTHS:
            if length != own.longest and length <= (own.room or length):
                yield f"captions cut at {length} tokens", self._compute(_changed(own, longest=length))
        if self._stated["output"] == "hidden":
            for pool in ("mean", "cls", "last"):
                yield f"pool: {pool}", self._compute(_changed(own, pool=POOLS[pool]))
            if (self._folder / MODULES).is_file():
                yield f"pool: {MODULES}", self._by_modules
        for dtype in DTYPES:
            if dtype != self._stated["dtype"]:
                recipe = TextRecipe(self._source, self._device, **{**self._stated, "dtype": dtype})
                yield f"arithmetic in {dtype}", self._compute(recipe.load())

    def _by_modules(self, rows: np.ndarray) -> Arrays:
        own: Any = self._encoder
        return self._compute(_changed(own, pool=load_modules(self._folder, own.dtype, self._device, 0)))(rows)


def _changed(encoder: TextEncoder, **values: Any) -> TextEncoder:
    changed = copy(encoder)
    vars(changed).update(values)
    return changed
