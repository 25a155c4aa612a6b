"""Patches in eight bits: half the bytes of float16.

An array ``patches`` of ``store_dtype: int8`` has a second array beside it, ``patches_scale``: a number for each channel
of each image. A stored number times the scale of its channel is the feature. Each image has its own scales, so a row
depends on nothing but its image. Patches of hidden layers are kept in the same way.
"""

import torch
from torch import Tensor

_STEPS = 127
_LEAST = 2.0**-24
"""The smallest number of float16."""


def stored_dtype(array: str, store_dtype: str) -> str:
    """Return the dtype of an array of a store: only patches are int8; beside them, the rest is float16."""
    return "float16" if store_dtype == "int8" and not array.startswith("patches") else store_dtype


def quantise(features: Tensor) -> tuple[Tensor, Tensor]:
    """Round each channel of each image to 255 steps between its extremes.

    Args:
        features: (B, P, D), finite.

    Returns:
        (B, P, D) int8, from -127 to 127, and (B, D) float16, the size of a step.
    """
    features = features.float()
    scale = (features.abs().amax(dim=1) / _STEPS).half()
    steps = features / scale.float().clamp_min(_LEAST)[:, None]  # A step of 0 makes a channel of zeros.
    return steps.round_().clamp_(-_STEPS, _STEPS).to(torch.int8), scale


def dequantise(steps: Tensor, scale: Tensor) -> Tensor:
    """Return the inverse of :func:`quantise` but for the rounding: (B, P, D) float16."""
    return steps.float().mul_(scale.float()[:, None]).half()
