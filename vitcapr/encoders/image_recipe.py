"""Recipe of image features, as attributes of a store; and the same features of other photographs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitcapr.encoders.checkpoint_kinds import Kind, Output, Patches, Pool, check_image_encoder, library
from vitcapr.encoders.checkpoints import locate, source_name, weights_digest
from vitcapr.encoders.devices import DTYPES, dtype_name, resolve_dtype, to_device
from vitcapr.encoders.image_encoders import configured_image_size, load_image_encoder
from vitcapr.encoders.network_checks import ImageEncoder
from vitcapr.encoders.preprocess import Preprocessing, read_preprocessing
from vitcapr.errors import UserError
from vitcapr.formats.int8 import dequantise, quantise, stored_dtype
from vitcapr.formats.store_manifest import arrays_of_layer
from vitcapr.loader import parts


@dataclass(frozen=True)
class ImageRecipe:
    """Recipe from images to features.

    Attributes:
        folder: of the checkpoint.
        note: a line for the log about the preprocessing, or None.
        attributes: those of every store of this recipe, for any images.
        load: loads the image encoder.
    """

    folder: Path
    preprocessing: Preprocessing
    note: str | None
    attributes: dict[str, Any]
    load: Callable[[], ImageEncoder]


def image_recipe(
    source: str,
    device: torch.device,
    *,
    name: str,
    revision: str,
    kind: Kind,
    output: Output,
    pool: Pool,
    dtype: str,
    store_dtype: str,
    layers: Sequence[int] | None,
    patches: Patches,
    **changes: Any,
) -> ImageRecipe:
    """Find a backbone, and collect what decides the features that it computes.

    Args:
        source: where its checkpoint is.
        name: its name in the attributes.
        revision, kind, output, pool, dtype, store_dtype, layers, patches: as in the configuration of a backbone.
        changes: those of its preprocessing, as there; see :func:`read_preprocessing`.
    """
    checkpoint = locate(source, revision)
    check_image_encoder(checkpoint.folder, kind, output, layers or (), changes.get("image_size"))
    size = configured_image_size(checkpoint.folder, kind)
    preprocessing, note = read_preprocessing(checkpoint.folder, size, **changes)
    arithmetic = resolve_dtype(dtype, device)
    attributes: dict[str, Any] = {
        "backbone": source_name(name),
        "revision": checkpoint.revision,
        "weights_sha256": weights_digest(checkpoint.folder),
        "preprocessing": preprocessing.describe(),
        "output": output,
        "query_pool": pool if output == "qformer" else None,
        "dtype": dtype_name(arithmetic),
        "store_dtype": store_dtype,
    }
    if reader := library(checkpoint.folder, pooled=False):
        attributes["library"] = reader
    if kind in parts("ENCODER"):
        attributes["reader"] = kind
    if layers:
        attributes["layers"] = list(layers)
        attributes["hidden_layers"] = (
            "cls_K and patches_K are the output of layer K, counted from 1, before any final normalisation; "
            "cls and patches are the output of the network"
        )
    if patches != "all":
        attributes["patches"] = patches
    if store_dtype == "int8":
        attributes["eight_bits"] = "patches[n, p, c] * patches_scale[n, c] is the feature"
    load = partial(load_described, checkpoint.folder, attributes, preprocessing, device, layers or ())
    return ImageRecipe(checkpoint.folder, preprocessing, note, attributes, load)


def load_described(
    folder: Path,
    attributes: Mapping[str, Any],
    preprocessing: Preprocessing,
    device: torch.device,
    layers: Sequence[int],
) -> ImageEncoder:
    """Return the encoder that the attributes of a store describe."""
    return load_image_encoder(
        folder,
        kind=attributes.get("reader", "auto"),
        output=attributes.get("output", "hidden"),
        pool=attributes.get("query_pool") or "mean",
        size=preprocessing.size,
        dtype=DTYPES[attributes["dtype"]],
        device=device,
        layers=layers,
        patches=attributes.get("patches", "all"),
    )


def round_as_stored(name: str, features: Tensor, store_dtype: str) -> Tensor:
    """Return features rounded like the array of this name in a store, as float32."""
    dtype = stored_dtype(name, store_dtype)
    return (dequantise(*quantise(features)) if dtype == "int8" else features.to(DTYPES[dtype])).float()


class PhotographEncoder:
    """Preprocessing, backbone and rounding of a store, for images in memory; made by :func:`open_like`."""

    def __init__(
        self, preprocessing: Preprocessing, backbone: ImageEncoder, store_dtype: str, layer: int | None = None
    ) -> None:
        self._preprocessing, self._backbone, self._store_dtype = preprocessing, backbone, store_dtype
        self._layer, self.grid, self.dim = layer, backbone.grid, backbone.shapes["cls"][0]

    def encode(self, pictures: Sequence[Image.Image]) -> dict[str, Tensor]:
        """Return ``cls: (B, D)`` and, if the store has them, ``patches: (B, P, D)`` of B RGB images.

        They are float32 on the backbone's device, rounded as in the store. The images may have any sizes.
        """
        pixels = torch.from_numpy(np.stack([self._preprocessing.prepared(picture) for picture in pictures]))
        return self.features(to_device(pixels, self._backbone.device))

    @torch.inference_mode()
    def features(self, pixels: Tensor) -> dict[str, Tensor]:
        """Return the same of prepared pixels (B, H, W, 3) uint8 on the backbone's device."""
        features = self._backbone.features(self._preprocessing.normalise(pixels, self._backbone.dtype))
        if self._layer is not None:
            of_layer = zip(("cls", "patches"), arrays_of_layer(self._layer), strict=True)
            features = {name: features[array] for name, array in of_layer if array in features}
        return {name: round_as_stored(name, array, self._store_dtype) for name, array in features.items()}

    def seen(self, picture: Image.Image) -> Image.Image:
        """Return the part of the picture that the patches cover: the whole picture, or the part that the crop keeps."""
        return picture if self._preprocessing.crop is None else Image.fromarray(self._preprocessing.prepared(picture))


def open_like(
    attributes: Mapping[str, Any], device: torch.device, source: str | None = None, layer: int | None = None
) -> PhotographEncoder:
    """Return an encoder that computes the features of a photograph like those of a store.

    Args:
        attributes: of the store.
        source: hub id or folder of the backbone; None: the name in ``attributes``.
        layer: the hidden layer that the encoder returns, counted from 1; None: the output of the backbone.

    Raises:
        UserError: the backbone is not found, or its weights are not those that filled the store.
    """
    name, revision = source or attributes["backbone"], attributes["revision"] or "main"
    folder = locate(name, revision).folder
    if weights_digest(folder) != attributes["weights_sha256"]:
        raise UserError(
            "this backbone is not the one that the features were computed with: its weights differ",
            where=folder,
            remedy=f"give the folder of {attributes['backbone']} with --backbone",
        )
    preprocessing = preprocessing_of(attributes)
    backbone = load_described(folder, attributes, preprocessing, device, () if layer is None else (layer,))
    return PhotographEncoder(preprocessing, backbone, attributes["store_dtype"], layer)


def preprocessing_of(attributes: Mapping[str, Any]) -> Preprocessing:
    """Return the preprocessing of a store, from its attributes."""
    stated = attributes["preprocessing"].items()
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in stated}
    return Preprocessing(**values)
