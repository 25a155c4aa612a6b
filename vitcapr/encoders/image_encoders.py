"""Loads the image encoder of a checkpoint of any kind."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from vitcapr.encoders.checkpoint_kinds import Kind, Output, Patches, Pool, check_image_encoder
from vitcapr.encoders.checkpoints import open_clip_checkpoint
from vitcapr.encoders.image_towers import ModelEncoder, load_with_transformers, model_image_size
from vitcapr.encoders.network_checks import NO_GRID, ImageEncoder, blocks, check_images
from vitcapr.errors import UserError
from vitcapr.formats.store_manifest import arrays_of_layer
from vitcapr.loader import parts


def configured_image_size(folder: Path, kind: Kind = "auto") -> tuple[int, int]:
    """Height and width in the model's configuration; of a plugin, its ``image_size``."""
    if kind in parts("ENCODER"):
        size: tuple[int, int] = parts("ENCODER")[kind].load().image_size
        return size
    return model_image_size(folder)


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
    patches: Patches = "all",
) -> ImageEncoder:
    """Load only the image encoder of the checkpoint in ``folder``.

    Arrays by kind and output:

    - hidden: ``patches (P, D)``, the tokens of the patches or the last feature map, row by row; and ``cls (D,)``:
      token 0 before the patches, else the pooled output, else the mean of the patches.
    - aligned: only ``cls (E,)``, not normalised, as ``get_image_features`` returns it.
    - BLIP-2 qformer: ``patches (32, D)``, the query tokens, and ``cls (D,)``, the pooled query tokens.
    - BLIP-2 aligned: ``patches (32, E)``, the projected tokens of length 1, and ``cls (E,)``, their mean. BLIP-2 scores
      an image by the *maximum* cosine over the tokens; the cosine with ``cls`` is proportional to their mean cosine.

    Args:
        pool: pooling of the query tokens; not used for other outputs.
        size: height and width of the images.
        layers: hidden layers of a ViT to return as well, counted from 1, increasing; output ``hidden`` only.
        patches: all of them, none, or the side of the grid that they are pooled to; output ``hidden`` only.

    Raises:
        UserError: the checkpoint is of another kind, has no such output or layer, lacks weights, does not run
            on this size, or the features of a picture depend on more than the picture.
    """
    actual = check_image_encoder(folder, kind, output, layers)
    encoder: ImageEncoder
    if reader := parts("ENCODER").get(actual):
        encoder = reader.load()(folder, size=size, dtype=dtype, device=device)
    elif actual == "open-clip":
        clip, _ = open_clip_checkpoint(folder, dtype, device, force_image_size=size)
        encoder = ModelEncoder(
            clip, lambda pixels: {"cls": clip.encode_image(pixels, normalize=False)}, size, device, dtype
        )
    else:
        encoder = load_with_transformers(folder, actual, output, pool, size, dtype, device)
    check_images(encoder, size, folder)
    return StoredArrays(encoder, layers, patches, folder) if layers or patches != "all" else encoder


class StoredArrays:
    """An image encoder that also returns hidden layers, from the same forward pass as its last layer.

    It can pool the patches to the means of the cells of a square grid, or leave them out.

    Layer k, counted from 1, adds ``cls_k (D,)`` and ``patches_k (P, D)``: what layer k hands to the next one, before
    any final normalisation. Where ``cls`` is not a token, ``cls_k`` is the mean of the patches.
    """

    def __init__(self, encoder: ImageEncoder, layers: Sequence[int], patches: Patches, folder: Path) -> None:
        """Wrap an encoder.

        Args:
            layers: the numbers of the layers, increasing.
            patches: ``all``, ``none``, or the side of the grid.
            folder: the checkpoint, for messages.

        Raises:
            UserError: the network has no layers, or fewer patches a side.
        """
        self._encoder, self._layers, self._patches, self.model = encoder, tuple(layers), patches, encoder.model
        self.dtype, self.device, self.cls_is = encoder.dtype, encoder.device, getattr(encoder, "cls_is", None)
        self._token, modules = getattr(encoder, "token", None), blocks(encoder.model)
        if layers and modules is None:
            raise UserError("the network has no list of layers", where=folder, remedy="leave out layers")
        self._hidden: dict[int, Tensor] = {}
        for layer in self._layers:
            cast(Any, modules)[layer - 1].register_forward_hook(partial(self._keep, layer))
        self.grid = encoder.grid if patches == "all" else NO_GRID
        if isinstance(patches, int):
            self.grid = (patches, patches)
            if patches > min(encoder.grid):
                rows, columns = encoder.grid
                what = f"the network has {rows} x {columns} patches, and they are to be pooled to {patches}"
                raise UserError(what, where=folder, remedy=f"set patches to at most {min(encoder.grid)}")
        self.shapes = dict(encoder.shapes)
        for layer in self._layers:
            count, width = encoder.shapes["patches"]
            self.shapes |= zip(arrays_of_layer(layer), ((width,), (count, width)), strict=True)
        if patches != "all":
            for name in [name for name in self.shapes if name.startswith("patches")]:
                shape = self.shapes.pop(name)
                self.shapes |= {name: (self.grid[0] ** 2, *shape[1:])} if patches != "none" else {}

    def _keep(self, layer: int, _module: nn.Module, _inputs: Any, output: Any) -> None:
        self._hidden[layer] = output if isinstance(output, Tensor) else output[0]

    @torch.inference_mode()
    def features(self, pixels: Tensor) -> dict[str, Tensor]:
        arrays = dict(self._encoder.features(pixels))
        for layer in self._layers:
            hidden, count = self._hidden.pop(layer), arrays["patches"].shape[1]
            if hidden.ndim != 3 or hidden.shape[1] < count or hidden.shape[2:] != arrays["patches"].shape[2:]:
                raise UserError(f"layer {layer} does not have the patches of the output", remedy="leave out layers")
            patches = hidden[:, -count:]
            cls = patches.mean(1) if self._token is None else hidden[:, self._token]
            arrays |= zip(arrays_of_layer(layer), (cls, patches), strict=True)
        pooled = self._patches != "all"
        return {
            name: self._pool(arrays[name]) if pooled and name.startswith("patches") else arrays[name]
            for name in self.shapes
        }

    def _pool(self, patches: Tensor) -> Tensor:
        """(B, P, D) -> (B, P', D); the arithmetic is float32."""
        cells = patches.float().mT.unflatten(-1, self._encoder.grid)
        return adaptive_avg_pool2d(cells, self.grid).flatten(2).mT.to(patches.dtype)
