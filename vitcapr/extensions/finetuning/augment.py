"""Random changes of pictures that keep their meaning: rotation, flips, brightness, hue, Gaussian blur.

The changes of a picture are drawn from (seed, epoch, row), and no computation mixes pictures of a batch. A picture
therefore changes the same way in every batch, and a continued training sees the same bytes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from vitcapr.encoders.devices import to_device
from vitcapr.encoders.preprocess import Preprocessing

_YIQ = ((0.299, 0.587, 0.114), (0.595716, -0.274453, -0.321263), (0.211456, -0.522591, 0.311135))
"""Matrix from RGB to luma and two chroma axes (FCC NTSC, 1953); the hue is the angle in the plane of these axes."""


@dataclass(frozen=True)
class Augmentation:
    """The limit of each change; a limit of 0 switches the change off.

    Attributes:
        probability: probability of rotation, brightness, hue and blur, each independently.
        rotation: maximum angle in degrees, in both directions.
        flip: probability of a left-right flip.
        brightness: maximum relative change of the values, up or down.
        hue: maximum rotation of the hue, in turns.
        blur: maximum standard deviation of the Gaussian, in pixels.
    """

    probability: float = 0.5
    rotation: float = 15.0
    flip: float = 0.5
    brightness: float = 0.2
    hue: float = 0.05
    blur: float = 1.0

    @property
    def radius(self) -> int:
        """Radius of the blur kernel in pixels: 3 times the maximum standard deviation."""
        return math.ceil(3 * self.blur)


@dataclass(frozen=True)
class Draws:
    """The sampled changes of B pictures. The neutral value of a change keeps the picture.

    Attributes:
        angle: (B,) degrees counter-clockwise.
        flip: (B,) bool.
        brightness: (B,) factors.
        hue: (B,) rotations of the hue, in turns.
        blur: (B,) standard deviations in pixels.
    """

    angle: np.ndarray
    flip: np.ndarray
    brightness: np.ndarray
    hue: np.ndarray
    blur: np.ndarray

    @classmethod
    def of(cls, limits: Augmentation, seed: int, epoch: int, rows: Sequence[int]) -> Self:
        """Return the changes of the pictures ``rows`` in an epoch, which do not depend on other pictures."""
        lot = np.stack([np.random.default_rng([seed, epoch, row]).random(9) for row in rows])
        happens = lot[:, :4] < limits.probability
        far = 2 * lot[:, 4:8] - 1
        return cls(
            angle=np.where(happens[:, 0], far[:, 0] * limits.rotation, 0.0),
            flip=lot[:, 8] < limits.flip,
            brightness=np.where(happens[:, 1], 1 + far[:, 1] * limits.brightness, 1.0),
            hue=np.where(happens[:, 2], far[:, 2] * limits.hue, 0.0),
            blur=np.where(happens[:, 3], np.abs(far[:, 3]) * limits.blur, 0.0),
        )

    @classmethod
    def none(cls, pictures: int) -> Self:
        """Neutral changes for this number of pictures."""
        nothing = np.zeros(pictures)
        return cls(nothing, nothing > 0, nothing + 1, nothing, nothing)


def augment(pixels: Tensor, draws: Draws, radius: int) -> Tensor:
    """Apply the changes in the order flip, rotation, brightness, hue, blur, and round to 8 bits at the end.

    Args:
        pixels: (B, H, W, 3) uint8, on any device.
        radius: radius of the blur kernel in pixels, the same for all pictures.

    Returns:
        (B, H, W, 3) uint8.
    """
    device = pixels.device
    changed = pixels.permute(0, 3, 1, 2).float()
    changed = _where(draws.flip, changed, lambda some, _: some.flip(3))
    changed = _where(draws.angle != 0, changed, lambda some, at: rotate(some, _tensor(draws.angle[at], device)))
    changed = _where(
        draws.brightness != 1,
        changed,
        lambda some, at: (some * _tensor(draws.brightness[at], device)[:, None, None, None]).clamp(0, 255),
    )
    changed = _where(draws.hue != 0, changed, lambda some, at: turn_hue(some, torch.from_numpy(draws.hue[at]).float()))
    changed = _where(draws.blur != 0, changed, lambda some, at: blur(some, _tensor(draws.blur[at], device), radius))
    return changed.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)


@dataclass(frozen=True)
class PixelInput:
    """Makes the input of an image encoder of stored 8-bit pixels.

    Attributes:
        augmentation: of the pictures trained on; None: no augmentation.
        seed: of the changes.
    """

    preprocessing: Preprocessing
    augmentation: Augmentation | None = None
    seed: int = 0

    def __call__(
        self, features: dict[str, Tensor], rows: Sequence[int] = (), epoch: int | None = None
    ) -> dict[str, Tensor]:
        """``pixels``, (B, H, W, 3) uint8 -> ``pixels``, (B, 3, H, W) float32, normalised, on the same device.

        Args:
            rows: of the pictures in the store, if they are augmented.
            epoch: of the training; None: no augmentation, as for validation.
        """
        pixels = features["pixels"]
        if self.augmentation is not None and epoch is not None and len(rows):
            draws = Draws.of(self.augmentation, self.seed, epoch, rows)
            pixels = augment(pixels, draws, self.augmentation.radius)
        return {"pixels": self.preprocessing.normalise(pixels, torch.float32)}


def single_changes(pictures: np.ndarray, limits: Augmentation) -> dict[str, np.ndarray]:
    """Return the pictures unchanged and under each change at its limit, for a figure.

    Changes that are off are left out.

    Args:
        pictures: (B, S, S, 3) uint8.

    Returns:
        By the name of the change, (B, S, S, 3) uint8; ``original`` comes first.
    """
    nothing, every = Draws.none(len(pictures)), np.ones(len(pictures))
    changes = {
        "original": (1.0, nothing),
        "rotation": (limits.rotation, replace(nothing, angle=limits.rotation * every)),
        "flip": (limits.flip, replace(nothing, flip=every > 0)),
        "brighter": (limits.brightness, replace(nothing, brightness=(1 + limits.brightness) * every)),
        "hue": (limits.hue, replace(nothing, hue=limits.hue * every)),
        "blur": (limits.blur, replace(nothing, blur=limits.blur * every)),
    }
    originals = torch.from_numpy(pictures)
    return {name: augment(originals, draws, limits.radius).numpy() for name, (limit, draws) in changes.items() if limit}


def rotate(pictures: Tensor, degrees: Tensor) -> Tensor:
    """``pictures: (B, 3, H, W)`` float, rotated counter-clockwise about their centre by ``degrees: (B,)``.

    Interpolation is bilinear. Pixels from outside the picture are mirrored at its edge, so there are no black corners.
    """
    height, width = pictures.shape[2:]
    cos, sin = torch.cos(torch.deg2rad(degrees)), torch.sin(torch.deg2rad(degrees))
    nothing = torch.zeros_like(cos)
    # Coordinates run from -1 to 1 along both sides, so that a turn in pixels needs the ratio of the sides.
    matrix = torch.stack(
        [
            torch.stack([cos, -sin * height / width, nothing], 1),
            torch.stack([sin * width / height, cos, nothing], 1),
        ],
        1,
    )
    grid = functional.affine_grid(matrix, list(pictures.shape), align_corners=False)
    return functional.grid_sample(pictures, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def turn_hue(pictures: Tensor, turns: Tensor) -> Tensor:
    """Rotate the hue of ``pictures: (B, 3, H, W)`` by ``turns: (B,)``; luma and grey stay.

    ``turns`` is in host memory.
    """
    yiq = torch.tensor(_YIQ, dtype=torch.float64)
    cos, sin = torch.cos(2 * math.pi * turns.double()), torch.sin(2 * math.pi * turns.double())
    turn = torch.zeros(len(turns), 3, 3, dtype=torch.float64)
    turn[:, 0, 0] = 1
    turn[:, 1, 1], turn[:, 1, 2], turn[:, 2, 1], turn[:, 2, 2] = cos, -sin, sin, cos
    matrix = to_device((torch.linalg.inv(yiq) @ turn @ yiq).to(pictures.dtype), pictures.device)[..., None, None]
    red, green, blue = pictures.unbind(1)
    channels = [matrix[:, c, 0] * red + matrix[:, c, 1] * green + matrix[:, c, 2] * blue for c in range(3)]
    return torch.stack(channels, 1).clamp(0, 255)


def blur(pictures: Tensor, sigma: Tensor, radius: int) -> Tensor:
    """``pictures: (B, 3, H, W)`` float, blurred by a Gaussian of ``sigma: (B,)`` pixels, cut off at ``radius``.

    The kernel is separable; the edge is mirrored.
    """
    number, _, height, width = pictures.shape
    reach = min(radius, height - 1, width - 1)
    at = torch.arange(-reach, reach + 1, device=pictures.device)
    weights = torch.exp(-0.5 * (at / sigma[:, None]) ** 2)
    weights = (weights / weights.sum(1, keepdim=True)).repeat_interleave(3, 0)[:, None]
    blurred = functional.pad(pictures, (reach,) * 4, mode="reflect").flatten(0, 1)[None]
    blurred = functional.conv2d(blurred, weights[:, :, None, :], groups=3 * number)
    blurred = functional.conv2d(blurred, weights[:, :, :, None], groups=3 * number)
    return blurred.view(number, 3, height, width)


def _where(chosen: np.ndarray, pictures: Tensor, change: Callable[[Tensor, np.ndarray], Tensor]) -> Tensor:
    """``pictures`` with ``change`` applied to the ``chosen: (B,)``; it receives these pictures and their places."""
    at = np.flatnonzero(chosen)
    if at.size:
        places = to_device(torch.from_numpy(at), pictures.device)
        pictures[places] = change(pictures[places], at)
    return pictures


def _tensor(values: np.ndarray, device: torch.device) -> Tensor:
    return to_device(torch.from_numpy(values).float(), device)
