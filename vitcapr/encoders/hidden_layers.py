"""Hidden layers of an image encoder, from the same forward pass as its last layer."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vitcapr.encoders.image_encoders import ImageEncoder
from vitcapr.errors import UserError
from vitcapr.formats.store_manifest import arrays_of_layer


class WithHiddenLayers:
    """An :class:`~vitcapr.encoders.image_encoders.ImageEncoder` that also gives hidden layers.

    Layer k, counted from 1, adds ``cls_k (D,)`` and ``patches_k (P, D)``: what layer k hands to the next one, before
    any final normalisation. In a network without a CLS token, ``cls_k`` is the mean of the patches.
    """

    def __init__(self, tower: ImageEncoder, layers: Sequence[int], folder: Path) -> None:
        """Args:
            layers: the numbers of the layers.
            folder: the checkpoint, for messages.

        Raises:
            UserError: the network has no such layer.
        """
        self._tower, self._layers = tower, tuple(layers)
        self.grid, self.dtype, self.device = tower.grid, tower.dtype, tower.device
        lists = [module for module in tower.model.modules() if isinstance(module, nn.ModuleList)]
        blocks = max(lists, key=len, default=nn.ModuleList())
        if self._layers[-1] > len(blocks):
            what = f"the network has {len(blocks)} layers, and layer {self._layers[-1]} is to be stored"
            raise UserError(what, where=folder, remedy=f"set layers to numbers from 1 to {len(blocks)}")
        self._seen: dict[int, Tensor] = {}
        for layer in self._layers:
            blocks[layer - 1].register_forward_hook(self._keep(layer))
        patches, width = tower.shapes["patches"]
        shapes = dict(tower.shapes)
        for layer in self._layers:
            shapes |= zip(arrays_of_layer(layer), ((width,), (patches, width)), strict=True)
        self.shapes: Mapping[str, tuple[int, ...]] = shapes

    @property
    def model(self) -> nn.Module:
        return self._tower.model

    def _keep(self, layer: int) -> Callable[..., None]:
        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            self._seen[layer] = output if isinstance(output, Tensor) else output[0]

        return keep

    @torch.inference_mode()
    def features(self, pixels: Tensor) -> dict[str, Tensor]:
        found = dict(self._tower.features(pixels))
        count = found["patches"].shape[1]
        for layer in self._layers:
            hidden = self._seen.pop(layer)
            patches = hidden[:, -count:]
            cls = hidden[:, 0] if hidden.shape[1] > count else patches.mean(1)
            found |= zip(arrays_of_layer(layer), (cls, patches), strict=True)
        return found
