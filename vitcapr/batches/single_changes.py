"""Each change of an augmentation on its own, for a figure that shows them."""

from dataclasses import replace

import numpy as np
import torch

from vitcapr.batches.augment import Augmentation, Draws, augment


def single_changes(pictures: np.ndarray, limits: Augmentation) -> dict[str, np.ndarray]:
    """The pictures as they are, and under each change at its limit.

    Args:
        pictures: (B, S, S, 3) uint8.

    Returns:
        By the name of the change, (B, S, S, 3) uint8; ``original`` comes first.
    """
    originals = torch.from_numpy(pictures)
    changes = _draws(len(pictures), limits)
    return {name: augment(originals, draws, limits.radius).numpy() for name, draws in changes.items()}


def _draws(pictures: int, limits: Augmentation) -> dict[str, Draws]:
    nothing = Draws.none(pictures)
    every = np.ones(pictures)
    return {
        "original": nothing,
        "rotation": replace(nothing, angle=limits.rotation * every),
        "flip": replace(nothing, flip=every > 0),
        "upside down": replace(nothing, vertical_flip=every > 0),
        "brighter": replace(nothing, brightness=(1 + limits.brightness) * every),
        "hue": replace(nothing, hue=limits.hue * every),
        "blur": replace(nothing, blur=limits.blur * every),
    }
