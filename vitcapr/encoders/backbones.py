"""A ViT-family checkpoint as a function from pixels to one CLS vector and a grid of patch vectors."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, Blip2VisionModel, CLIPVisionModel

from vitcapr.encoders.checkpoints import weight_files
from vitcapr.encoders.image_encoders import CONVOLUTIONAL
from vitcapr.encoders.loading import load_part, read_config
from vitcapr.errors import UserError

VISION_PARTS: Mapping[str, Any] = {"clip": CLIPVisionModel, "blip-2": Blip2VisionModel}
"""The class of the image encoder in a checkpoint with a text encoder, by model type."""

IMAGENET_SIZE = (224, 224)

_OPTIONAL_WEIGHTS = ("pooler", "mask_token")
_VIT_REMEDY = "use a ViT, DeiT, DINOv2 or CLIP checkpoint"


def model_image_size(folder: Path) -> tuple[int, int]:
    """Height and width in the model's configuration; for a convolutional network without one, ``IMAGENET_SIZE``.

    Raises:
        UserError: transformers does not know the model type, or the model has no image encoder.
    """
    config = _vision(read_config(folder))
    if config.model_type in CONVOLUTIONAL:
        return _pair(getattr(config, "image_size", IMAGENET_SIZE))
    return _pair(_required(config, "image_size", folder))


def patch_grid(config: Any, size: tuple[int, int], folder: Path) -> tuple[tuple[int, int], bool]:
    """Rows and columns of patches in images of ``size``, and whether ``size`` differs from the checkpoint's.

    Args:
        config: the configuration of the image encoder.

    Raises:
        UserError: the encoder is no ViT, or the patch size does not divide ``size``.
    """
    patch = _pair(_required(config, "patch_size", folder))
    if size[0] % patch[0] or size[1] % patch[1]:
        raise UserError(
            f"pictures of {size[0]} x {size[1]} do not divide into patches of {patch[0]} x {patch[1]}",
            where=folder,
            remedy=f"set image_size to a multiple of {patch[0]}",
        )
    resized = _pair(_required(config, "image_size", folder)) != size
    return (size[0] // patch[0], size[1] // patch[1]), resized


def wrong_size(size: tuple[int, int], folder: Path, error: Exception, remedy: str) -> UserError:
    """The error to raise if a model fails with ``error`` on images of ``size``."""
    what = f"the checkpoint does not run on pictures of {size[0]} x {size[1]}: {str(error)[:120]}"
    return UserError(what, where=folder, remedy=remedy)


class Backbone:
    """A loaded model. ``backbone(pixels)`` maps ``(B, 3, H, W)`` to ``cls (B, D)`` and ``patches (B, P, D)``.

    The output has a prefix of CLS and, in some families, a distillation token or registers. Its length is the length of
    the output without the patches of the grid. The first token is the CLS vector; the rest of the prefix is dropped.

    Attributes:
        model: the network, frozen and in evaluation mode.
        options: keyword arguments of the network, without the pixels.
        grid: rows and columns of patches.
        dim: D.
        prefix: number of tokens before the patches.
    """

    def __init__(
        self, folder: Path, size: tuple[int, int], dtype: torch.dtype, device: torch.device | None = None
    ) -> None:
        """Args:
            folder: a checkpoint in transformers' format, weights as safetensors.
            size: height and width of the images; if they differ from the checkpoint's, position embeddings are
                interpolated.
            dtype: of weights and arithmetic.

        Raises:
            UserError: the checkpoint is no ViT with a CLS token, or it does not run on images of this size.
        """
        weight_files(folder)
        self.size, self.dtype, self.device = size, dtype, device or torch.device("cpu")
        config = read_config(folder)
        if config.model_type in CONVOLUTIONAL:
            raise UserError(
                f"a convolutional network ({config.model_type}) has no CLS token and no attention",
                where=folder,
                remedy=f"{_VIT_REMEDY}; for a backbone of kind: cnn no roll-out is drawn",
            )
        self.grid, resized = patch_grid(_vision(config), size, folder)
        self.model: torch.nn.Module = _load(folder, config, dtype).to(self.device)
        takes = inspect.signature(self.model.forward).parameters
        self.options: Mapping[str, Any] = (
            {"interpolate_pos_encoding": True} if resized and "interpolate_pos_encoding" in takes else {}
        )
        try:
            with torch.inference_mode():
                probe = self._hidden(torch.zeros(1, 3, *size, dtype=dtype, device=self.device))
        except (ValueError, RuntimeError) as error:
            raise wrong_size(size, folder, error, "set image_size to the checkpoint's own") from error
        patches = self.grid[0] * self.grid[1]
        if probe.ndim != 3 or probe.shape[1] <= patches:
            raise UserError(
                f"the model's output {tuple(probe.shape)} is not a CLS token followed by {self.grid[0]} x "
                f"{self.grid[1]} patches",
                where=folder,
                remedy=_VIT_REMEDY,
            )
        self.prefix, self.dim = probe.shape[1] - patches, probe.shape[2]

    def _hidden(self, pixels: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.model(pixels, **self.options).last_hidden_state
        return hidden

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of the arrays of :meth:`features`, without the batch axis."""
        return {"patches": (self.grid[0] * self.grid[1], self.dim), "cls": (self.dim,)}

    def features(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """The arrays of a store: ``patches (B, P, D)`` and ``cls (B, D)``."""
        cls, patches = self(pixels)
        return {"patches": patches, "cls": cls}

    @torch.inference_mode()
    def __call__(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self._hidden(pixels)
        return hidden[:, 0], hidden[:, self.prefix :]


def _vision(config: Any) -> Any:
    """The configuration of the image encoder."""
    return getattr(config, "vision_config", config)


def _required(config: Any, key: str, folder: Path) -> Any:
    value = getattr(config, key, None)
    if value is None:
        raise UserError(f"the model's configuration has no {key}: not a ViT", where=folder / "config.json")
    return value


def _pair(value: Any) -> tuple[int, int]:
    return (int(value), int(value)) if isinstance(value, int) else (int(value[0]), int(value[1]))


def _load(folder: Path, config: Any, dtype: torch.dtype) -> Any:
    """The image encoder, without the rest of the checkpoint."""
    if config.model_type in VISION_PARTS:
        part = VISION_PARTS[config.model_type]
        return load_part(part, folder, config=config.vision_config, dtype=dtype, strip="vision_model")
    model = load_part(AutoModel, folder, dtype=dtype, optional=_OPTIONAL_WEIGHTS)
    return getattr(model, "vision_model", model)
