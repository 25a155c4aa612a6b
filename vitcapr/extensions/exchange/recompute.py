"""Rows of a store computed again: by its own recipe, and by recipes that differ from it in one thing.

A recipe has the encoder with which extraction fills a store, so an audit computes what extraction computes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch

from vitcapr.data.images import ImageSource
from vitcapr.encoders.checkpoint_kinds import MODULES
from vitcapr.encoders.checkpoints import locate, weights_digest
from vitcapr.encoders.devices import DTYPES
from vitcapr.encoders.image_recipe import load_described, preprocessing_of, round_as_stored
from vitcapr.encoders.network_checks import blocks
from vitcapr.encoders.preprocess import CLIP_STATISTICS, IMAGENET_STATISTICS, INTERPOLATIONS, Preprocessing
from vitcapr.encoders.text_encoders import POOLS, TextEncoder, TextRecipe
from vitcapr.encoders.text_towers import load_modules, read_published
from vitcapr.formats.manifest import Manifest
from vitcapr.store.caption_rows import CaptionFeatures
from vitcapr.store.fill import RowEncoder
from vitcapr.store.image_rows import ImageFeatures, Pixels
from vitcapr.store.layout import Rows

Arrays = dict[str, np.ndarray]
"""The arrays of some rows, rounded as in the store."""
_ROWS_AT_ONCE = 16
_PROMPTS = ("query: ", "passage: ", "a photo of ")
_LENGTHS = (8, 16, 32, 64, 77, 128, 256, 512)


class Recipe(NamedTuple):
    """A recipe of rows.

    Attributes:
        load: loads the encoder.
        source: the name of the encoder's array that takes the place of an array of the store.
    """

    name: str
    load: Callable[[], RowEncoder]
    source: Callable[[str], str] = str


def compute_rows(encoder: RowEncoder, rows: np.ndarray) -> Arrays:
    """Compute rows as :func:`vitcapr.store.fill.fill` does, and return them as float32."""
    batches = np.split(rows, range(_ROWS_AT_ONCE, len(rows), _ROWS_AT_ONCE))
    parts = [
        {name: round_as_stored(name, values, encoder.store_dtype) for name, values in features.items()}
        for features in encoder.compute(batches)
    ]
    return {name: torch.cat([part[name] for part in parts]).cpu().numpy() for name in parts[0]}


class Recipes:
    """The recipe of a store, and others.

    Attributes:
        own: the recipe of the store.
        weights: the digest of the checkpoint that is used.
    """

    own: Recipe
    weights: str

    def __init__(self) -> None:
        self._last: tuple[RowEncoder, np.ndarray, Arrays] | None = None

    def compute(self, recipe: Recipe, rows: np.ndarray) -> Arrays:
        """Return the arrays of rows by a recipe. Neighbouring recipes with one encoder share its forward pass."""
        encoder, last = recipe.load(), self._last
        if last is None or last[0] is not encoder or last[1] is not rows:
            last = self._last = encoder, rows, compute_rows(encoder, rows)
        computed = last[2]
        arrays = {name: computed[other] for name in computed if (other := recipe.source(name)) in computed}
        # Patches that take the place of a vector are averaged.
        return {name: a.mean(1) if name.startswith("cls") and a.ndim == 3 else a for name, a in arrays.items()}

    def others(self) -> Iterator[Recipe]:
        """Yield the recipes that differ from the store's in one thing."""
        raise NotImplementedError


class ImageRecipes(Recipes):
    """Recipes of features of images.

    Args:
        attributes: of the store.
        source: hub id or folder of the backbone.
    """

    def __init__(
        self, attributes: Mapping[str, Any], data: Manifest, files: ImageSource, source: str, device: torch.device
    ) -> None:
        super().__init__()
        self._attributes, self._images, self._files, self._device = attributes, data.image_table, files, device
        self._folder = locate(source, attributes["revision"] or "main").folder
        self.weights, self._preprocessing = weights_digest(self._folder), preprocessing_of(attributes)
        self._backbone = self._load(attributes.get("layers", ()), attributes["dtype"])
        self.own = Recipe("", self._encoder(self._preprocessing))

    def _load(self, layers: Sequence[int], dtype: str) -> Any:
        described = {**self._attributes, "dtype": dtype}
        return load_described(self._folder, described, self._preprocessing, self._device, layers)

    def _encoder(self, preprocessing: Preprocessing, load: Callable[[], Any] | None = None) -> Callable[[], RowEncoder]:
        """Return a function that makes the encoder, once; ``load`` loads another backbone."""

        @cache
        def make() -> RowEncoder:
            backbone = self._backbone if load is None else load()
            pixels = Pixels(self._images, self._files, preprocessing)
            return ImageFeatures(pixels, backbone, self._attributes["store_dtype"])

        return make

    def others(self) -> Iterator[Recipe]:
        for name, preprocessing in _preprocessings(self._preprocessing):
            yield Recipe(name, self._encoder(preprocessing))
        layers, own = self._attributes.get("layers", ()), self._attributes["dtype"]
        for dtype in DTYPES:
            if dtype != own:
                other = self._encoder(self._preprocessing, partial(self._load, layers, dtype))
                yield Recipe(f"arithmetic in {dtype}", other)
        if "patches" in self._backbone.shapes and self._attributes["output"] == "hidden":
            yield Recipe("cls is the mean of the patches", self.own.load, lambda _: "patches")
            layers = range(1, len(blocks(self._backbone.model) or ()) + 1)
            every = self._encoder(self._preprocessing, partial(self._load, layers, own))
            for layer in layers:
                yield Recipe(f"layer {layer}", every, partial(_at_layer, f"_{layer}"))
            yield Recipe("the output instead of a layer", every, partial(_at_layer, ""))


def _at_layer(suffix: str, name: str) -> str:
    return name.partition("_")[0] + suffix


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


class CaptionRecipes(Recipes):
    """Recipes of features of captions; ``source`` is the hub id or folder of the text encoder."""

    def __init__(self, attributes: Mapping[str, Any], data: Manifest, source: str, device: torch.device) -> None:
        super().__init__()
        self._captions, self._store_dtype = Rows.of_captions(data), attributes["store_dtype"]
        stated = {name: attributes[name] for name in ("output", "dtype", "max_length")}
        stated |= {"prompt": attributes.get("prompt"), "pool": attributes["pool"] or "auto"}
        self._stated = {**stated, "revision": attributes["revision"] or "main"}
        self._source, self._device = source, device
        recipe = TextRecipe(source, device, **self._stated)
        self.weights, self._encoder = recipe.attributes["weights_sha256"], recipe.load()
        self._folder = recipe.checkpoint.folder
        self.own = self._recipe("", lambda: self._encoder)

    def _recipe(self, name: str, load: Callable[[], Any]) -> Recipe:
        return Recipe(name, lambda: CaptionFeatures(self._captions, load(), self._store_dtype))

    def _changed(self, name: str, **values: Any) -> Recipe:
        """Return the recipe with other values of the encoder's attributes."""

        def load() -> Any:
            changed = copy(self._encoder)
            vars(changed).update({key: value() if key == "pool" else value for key, value in values.items()})
            return changed

        return self._recipe(name, load)

    def others(self) -> Iterator[Recipe]:
        own = self._encoder
        if not isinstance(own, TextEncoder):
            return
        name = "captions not in lower case" if own.lowercase else "captions in lower case"
        yield self._changed(name, lowercase=not own.lowercase)
        for prompt in dict.fromkeys(["", *read_published(self._folder).prompts.values(), *_PROMPTS]):
            if prompt != own.prompt:
                yield self._changed(f"prompt '{prompt}'" if prompt else "no prompt", prompt=prompt)
        for length in _LENGTHS:
            if length != own.longest and length <= (own.room or length):
                yield self._changed(f"captions cut at {length} tokens", longest=length)
        if self._stated["output"] == "hidden":
            for pool in ("mean", "cls", "last"):
                yield self._changed(f"pool: {pool}", pool=partial(POOLS.__getitem__, pool))
            if (self._folder / MODULES).is_file():
                yield self._changed(
                    f"pool: {MODULES}", pool=partial(load_modules, self._folder, own.dtype, self._device, 0)
                )
        for dtype in DTYPES:
            if dtype != self._stated["dtype"]:
                recipe = TextRecipe(self._source, self._device, **{**self._stated, "dtype": dtype})
                yield self._recipe(f"arithmetic in {dtype}", recipe.load)
