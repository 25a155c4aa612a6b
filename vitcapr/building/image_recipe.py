"""Finds a backbone, and what decides the numbers of the features that it extracts."""

from dataclasses import dataclass
from typing import Any

import torch

from vitcapr.config.features import BackboneConfig
from vitcapr.encoders.checkpoints import Checkpoint, locate, weights_digest
from vitcapr.encoders.image_encoders import image_size_of
from vitcapr.encoders.precision import dtype_name, resolve_dtype
from vitcapr.encoders.preprocess import Preprocessing, read_preprocessing
from vitcapr.formats.store_manifest import LAYERS
from vitcapr.store.origin import source_name


@dataclass(frozen=True)
class ImageRecipe:
    """How pictures become features.

    Attributes:
        note: a line for the log about the preprocessing, if there is something to say.
        attributes: of every store of this recipe, whatever its pictures.
    """

    checkpoint: Checkpoint
    preprocessing: Preprocessing
    note: str | None
    dtype: torch.dtype
    attributes: dict[str, Any]


def image_recipe(wanted: BackboneConfig, source: str, device: torch.device) -> ImageRecipe:
    """The recipe of a backbone.

    Args:
        source: where its checkpoint is: ``wanted.source``, or the folder of a backbone that the workflow trained.

    Raises:
        UserError: the backbone is not found, or cannot be used as ``wanted`` says.
    """
    checkpoint = locate(source, wanted.revision)
    preprocessing, note = read_preprocessing(
        checkpoint.folder, image_size_of(checkpoint.folder), wanted.image_size, wanted.interpolation, wanted.mirror
    )
    dtype = resolve_dtype(wanted.dtype, device)
    attributes: dict[str, Any] = {
        "backbone": source_name(wanted.source),
        "revision": checkpoint.revision,
        "weights_sha256": weights_digest(checkpoint.folder),
        "preprocessing": preprocessing.describe(),
        "output": wanted.output,
        "query_pool": wanted.pool if wanted.output == "qformer" else None,
        "dtype": dtype_name(dtype),
        "store_dtype": wanted.store_dtype,
    }
    if wanted.layers:
        attributes[LAYERS] = wanted.layers
        attributes["hidden_layers"] = (
            "cls_K and patches_K are the output of layer K, counted from 1, before any final normalisation; "
            "cls and patches are the output of the network"
        )
    if wanted.store_dtype == "int8":
        attributes["eight_bits"] = "patches[n, p, c] * patches_scale[n, c] is the feature"
    return ImageRecipe(checkpoint, preprocessing, note, dtype, attributes)
