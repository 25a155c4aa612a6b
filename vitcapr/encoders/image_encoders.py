"""The image encoder of a checkpoint of any kind, as a function from pixels to the arrays of a store.

- ``hidden``: the last layer: a CLS vector and a vector for each patch. For a convolutional network: the pooled output
  and a vector for each position of the last feature map.
- ``aligned``: the vector in the space shared with captions, of CLIP, SigLIP or BLIP-2's image-text contrastive head
  (J. Li et al. 2023, section 3.1).
- ``qformer``: BLIP-2's query tokens before any projection.

A plain ViT is loaded without transformers, which takes seconds to import.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

import torch
from torch import Tensor

from vitcapr.encoders.checkpoints import model_type
from vitcapr.encoders.plain_vit import load_plain_vit, plain_config
from vitcapr.errors import UserError

Kind = Literal["auto", "vit", "cnn", "clip", "siglip", "blip-2"]
Output = Literal["hidden", "aligned", "qformer"]
Pool = Literal["mean", "max", "first"]

OUTPUTS: Mapping[str, tuple[Output, ...]] = {
    "vit": ("hidden",),
    "cnn": ("hidden",),
    "clip": ("hidden", "aligned"),
    "siglip": ("hidden", "aligned"),
    "blip-2": ("hidden", "aligned", "qformer"),
}
NO_GRID = (0, 0)
CONVOLUTIONAL = frozenset({"resnet", "regnet", "convnext", "convnextv2", "mobilenet_v1", "mobilenet_v2", "bit"})
"""Model types that return a feature map (B, D, h, w) and its pooled vector."""


class ImageEncoder(Protocol):
    """Computes the arrays of a store, with B rows each, from pixels ``(B, 3, H, W)``.

    Attributes:
        grid: rows and columns of patches; (0, 0) if ``patches`` have no position in the image.
        shapes: the shape of a row of each array.
    """

    dtype: torch.dtype
    device: torch.device
    grid: tuple[int, int]

    @property
    def model(self) -> torch.nn.Module: ...

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]: ...

    def features(self, pixels: Tensor) -> dict[str, Tensor]: ...


def image_size_of(folder: Path) -> tuple[int, int]:
    """Height and width in the model's configuration.

    Raises:
        UserError: transformers does not know the model type, or the model has no image encoder.
    """
    config = plain_config(folder)
    if config is not None:
        return config["image_size"], config["image_size"]
    from vitcapr.encoders.backbones import model_image_size

    return model_image_size(folder)


def kind_of(folder: Path, kind: Kind, output: Output) -> str:
    """The kind of the checkpoint, a key of :data:`OUTPUTS`.

    Raises:
        UserError: the checkpoint is not of the requested kind, or has no such output.
    """
    found = model_type(folder)
    named = "cnn" if found in CONVOLUTIONAL else found if found in OUTPUTS else "vit"
    if kind not in ("auto", named):
        raise UserError(f"the backbone is of kind {named} ({found}), not {kind}", where=folder, remedy="set kind: auto")
    if output not in OUTPUTS[named]:
        what = f"a backbone of kind {named} ({found}) has no output '{output}'"
        raise UserError(what, where=folder, remedy=f"set output to {' or '.join(OUTPUTS[named])}")
    return named


def load_image_encoder(
    folder: Path,
    *,
    kind: Kind = "auto",
    output: Output = "hidden",
    pool: Pool = "mean",
    size: tuple[int, int],
    dtype: torch.dtype,
    device: torch.device,
    layers: Sequence[int] = (),
) -> ImageEncoder:
    """Load only the image encoder of the checkpoint in ``folder``.

    Arrays by kind and output:

    - hidden: ``cls (D,)`` and ``patches (P, D)``. SigLIP has no CLS token; its ``cls`` is the output of its
      attention-pooling head or, without a head, the mean of the patches. For a convolutional network, ``cls`` is the
      pooled output, ``patches`` is the last feature map row by row, and the grid is the map's height and width.
    - CLIP, SigLIP aligned: only ``cls (E,)``, not normalised, as ``get_image_features`` returns it.
    - BLIP-2 qformer: ``patches (32, D)``, the query tokens, and ``cls (D,)``, the pooled query tokens.
    - BLIP-2 aligned: ``patches (32, E)``, the projected tokens of length 1, and ``cls (E,)``, their mean. BLIP-2 scores
      an image by the *maximum* cosine over the tokens; the cosine with ``cls`` is proportional to their mean cosine.

    Args:
        pool: pooling of the query tokens; not used for other outputs.
        size: height and width of the images.
        layers: hidden layers of a ViT to return as well, counted from 1, increasing; output ``hidden`` only.

    Raises:
        UserError: the checkpoint is of another kind, has no such output or layer, lacks weights or does not run on this
            size.
    """
    named = kind_of(folder, kind, output)
    if layers and named == "cnn":
        remedy = "leave out layers, or use a ViT"
        raise UserError("a convolutional network has no layers of patches to choose from", where=folder, remedy=remedy)
    tower: ImageEncoder | None = load_plain_vit(folder, output=output, size=size, dtype=dtype, device=device)
    if tower is None:
        from vitcapr.encoders.image_towers import load_with_transformers

        tower = load_with_transformers(folder, named, output, pool, size, dtype, device)
    if not layers:
        return tower
    from vitcapr.encoders.hidden_layers import WithHiddenLayers

    return WithHiddenLayers(tower, layers, folder)
