"""Attention roll-out: the contribution of each patch to the CLS vector of a ViT (Abnar and Zuidema 2020, section 3)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from vitcapr.encoders.checkpoints import locate
from vitcapr.encoders.image_towers import Backbone, model_image_size
from vitcapr.encoders.kinds import VIT_REMEDY
from vitcapr.encoders.preprocess import read_preprocessing
from vitcapr.errors import UserError
from vitcapr.progress import Reporter


def roll_out(attentions: Sequence[Tensor], prefix: int) -> Tensor:
    """Return the attention flow from each patch to the first token through all layers.

    The residual path counts half of each layer.

    For each layer, A is the mean attention of the heads. The matrices (A + I) / 2 of all layers are multiplied
    (equation 1). The result is the first row (CLS) without the prefix (CLS, distillation token, registers), scaled to a
    sum of 1.

    Args:
        attentions: for each layer, first to last, (B, heads, T, T); each row sums to 1.
        prefix: number of tokens before the patches.

    Returns:
        (B, T - prefix) float32.
    """
    identity = torch.eye(attentions[0].shape[-1], device=attentions[0].device)
    flow = identity
    for attention in attentions:
        flow = (attention.float().mean(dim=1) + identity) / 2 @ flow
    patches = flow[:, 0, prefix:]
    return patches / patches.sum(dim=1, keepdim=True)


def open_rollout(
    source: str,
    revision: str,
    *,
    image_size: int | None,
    interpolation: str | None,
    report: Reporter,
) -> tuple[tuple[int, int], Callable[[Image.Image], NDArray[np.float32]]]:
    """Return the grid of a backbone's patches, and a function from an RGB image of any size to its roll-out (h, w)."""
    folder = locate(source, revision).folder
    preprocessing, note = read_preprocessing(folder, model_image_size(folder), image_size, interpolation)
    if note:
        report.line(note)
    model = AttendingBackbone(folder, preprocessing.size, torch.float32)

    def of_image(image: Image.Image) -> NDArray[np.float32]:
        pixels = preprocessing.normalise(torch.from_numpy(preprocessing.prepared(image)[None]), torch.float32)
        rolled: NDArray[np.float32] = model.roll_out(pixels)[0].numpy()
        return rolled

    return model.grid, of_image


class AttendingBackbone(Backbone):
    """A backbone that also returns its attention. It is slower, because fused kernels do not return attention."""

    def __init__(self, folder: Path, size: tuple[int, int], dtype: torch.dtype) -> None:
        """Load a ViT that returns its attention.

        Raises:
            UserError: the checkpoint is no ViT, or the model does not return attention over its tokens.
        """
        super().__init__(folder, size, dtype)
        self.require_cls()
        cast(Any, self.model).set_attn_implementation("eager")
        tokens = self.prefix + self.grid[0] * self.grid[1]
        probe = self.attentions(torch.zeros(1, 3, *size, dtype=dtype, device=self.device))
        if not probe or any(layer is None or layer.shape[-2:] != (tokens, tokens) for layer in probe):
            raise UserError(
                f"the model does not return its attention over its {tokens} tokens",
                where=folder,
                remedy=VIT_REMEDY,
            )

    @torch.inference_mode()
    def attentions(self, pixels: Tensor) -> tuple[Tensor, ...]:
        """Return the attention (B, heads, T, T) of each layer, first to last, for pixels (B, 3, H, W)."""
        return tuple(self.model(pixels, output_attentions=True, **self.options).attentions or ())

    def roll_out(self, pixels: Tensor) -> Tensor:
        """Return the roll-out (B, h, w) float32 over the grid of patches, each summing to 1."""
        rolled: Tensor = roll_out(self.attentions(pixels), self.prefix).unflatten(1, self.grid)
        return rolled
