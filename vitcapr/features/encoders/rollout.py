"""Attention roll-out: which patches the CLS vector of a ViT is made from (Abnar and Zuidema 2020, section 3)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from vitcapr.errors import UserError
from vitcapr.features.encoders.backbones import Backbone


def roll_out(attentions: Sequence[Tensor], prefix: int) -> Tensor:
    """The attention flow from each patch to the first token through all layers; the residual path counts half of each
    layer.

    Layer by layer, the heads' mean attention A becomes (A + I) / 2, and the layers are multiplied (equation 1). Of the
    first row (CLS), the prefix (CLS itself, a distillation token, registers) is left out and the rest scaled to sum to
    1.

    Args:
        attentions: for each layer, first to last, (B, heads, T, T); each row sums to 1.
        prefix: tokens before the patches.

    Returns:
        (B, T - prefix) float32.
    """
    flow: Tensor | None = None
    for attention in attentions:
        mean = attention.float().mean(dim=1)
        layer = (mean + torch.eye(mean.shape[-1], device=mean.device)) / 2
        flow = layer if flow is None else layer @ flow
    if flow is None:
        raise ValueError("attention of no layer")
    patches = flow[:, 0, prefix:]
    return patches / patches.sum(dim=1, keepdim=True)


class AttendingBackbone(Backbone):
    """A backbone that also returns its attention. It is slower, because fused kernels do not return attention."""

    def __init__(
        self, folder: Path, size: tuple[int, int], dtype: torch.dtype, device: torch.device | None = None
    ) -> None:
        """Raises:
        UserError: the checkpoint is none of a ViT, or its attention is not over its own tokens.
        """
        super().__init__(folder, size, dtype, device)
        cast(Any, self._model).set_attn_implementation("eager")
        tokens = self.prefix + self.grid[0] * self.grid[1]
        probe = self.attentions(torch.zeros(1, 3, *size, dtype=dtype, device=self.device))
        if not probe or any(layer is None or layer.shape[-2:] != (tokens, tokens) for layer in probe):
            raise UserError(
                f"the model does not tell its attention over its {tokens} tokens",
                where=folder,
                remedy="use a ViT, DeiT, DINOv2 or CLIP checkpoint",
            )

    @torch.inference_mode()
    def attentions(self, pixels: Tensor) -> tuple[Tensor, ...]:
        """For each layer, first to last, (B, heads, T, T) of pixels (B, 3, H, W)."""
        return tuple(self._model(pixels, output_attentions=True, **self._options).attentions or ())

    def roll_out(self, pixels: Tensor) -> Tensor:
        """The roll-out (B, h, w) float32 over the grid of patches, each summing to 1."""
        rolled: Tensor = roll_out(self.attentions(pixels), self.prefix).unflatten(1, self.grid)
        return rolled
