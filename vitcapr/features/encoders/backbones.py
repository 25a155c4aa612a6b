"""A ViT-family checkpoint as a function from pixels to one CLS vector and a grid of patch vectors."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, Blip2VisionModel, CLIPVisionModel

from vitcapr.errors import UserError
from vitcapr.features.encoders.checkpoints import weight_files
from vitcapr.features.encoders.loading import load_part, read_config

VISION_PARTS: Mapping[str, Any] = {"clip": CLIPVisionModel, "blip-2": Blip2VisionModel}
"""What is loaded of a checkpoint of pictures and text, by its model type."""

CONVOLUTIONAL = frozenset({"resnet", "regnet", "convnext", "convnextv2", "mobilenet_v1", "mobilenet_v2", "bit"})
"""Model types whose output is a map (B, D, h, w) and its pooled vector."""
IMAGENET_SIZE = (224, 224)

_OPTIONAL_WEIGHTS = ("pooler", "mask_token")
_VIT_REMEDY = "use a ViT, DeiT, DINOv2 or CLIP checkpoint"


def model_image_size(folder: Path) -> tuple[int, int]:
    """Height and width that the model's configuration names; a convolutional network takes any, and may name none.

    Raises:
        UserError: the configuration is of a kind that transformers does not know, or not of a network for pictures.
    """
    config = _vision(read_config(folder))
    if config.model_type in CONVOLUTIONAL:
        return _pair(getattr(config, "image_size", IMAGENET_SIZE))
    return _pair(_required(config, "image_size", folder))


def patch_grid(config: Any, size: tuple[int, int], folder: Path) -> tuple[tuple[int, int], bool]:
    """Rows and columns of patches in pictures of ``size``, and whether that is not the checkpoint's own size.

    Args:
        config: of the model that looks at the pictures.

    Raises:
        UserError: it is not of a ViT, or part of a patch would be left.
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
    """What to raise when a model stopped with ``error`` on pictures of ``size``."""
    what = f"the checkpoint does not run on pictures of {size[0]} x {size[1]}: {str(error)[:120]}"
    return UserError(what, where=folder, remedy=remedy)


class Backbone:
    """A loaded model. ``backbone(pixels)`` maps ``(B, 3, H, W)`` to ``cls (B, D)`` and ``patches (B, P, D)``.

    The tokens before the patches (CLS, then a distillation token or registers in some families) are told from the
    patches by counting: what is left of the output's length after the grid. The first is the CLS vector, the rest
    are dropped.

    Attributes:
        grid: rows and columns of patches.
        dim: D.
        prefix: tokens before the patches.
    """

    def __init__(
        self, folder: Path, size: tuple[int, int], dtype: torch.dtype, device: torch.device | None = None
    ) -> None:
        """Args:
            folder: a checkpoint in transformers' format, weights as safetensors.
            size: height and width of the pictures; other than the checkpoint's, position embeddings are interpolated.
            dtype: of weights and arithmetic.

        Raises:
            UserError: not a checkpoint of a ViT with a CLS token, or of another size that it cannot adapt to.
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
        self._model: torch.nn.Module = _load(folder, config, dtype).to(self.device)
        takes = inspect.signature(self._model.forward).parameters
        self._options: Mapping[str, Any] = (
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

    @property
    def model(self) -> torch.nn.Module:
        """The network itself, frozen and in evaluation mode; for what trains it further."""
        return self._model

    @property
    def options(self) -> Mapping[str, Any]:
        """What the network is called with besides the pixels."""
        return self._options

    def _hidden(self, pixels: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self._model(pixels, **self._options).last_hidden_state
        return hidden

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The arrays that :meth:`features` makes, without their first axis."""
        return {"patches": (self.grid[0] * self.grid[1], self.dim), "cls": (self.dim,)}

    def features(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """What a store keeps: ``patches (B, P, D)`` and ``cls (B, D)``."""
        cls, patches = self(pixels)
        return {"patches": patches, "cls": cls}

    @torch.inference_mode()
    def __call__(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self._hidden(pixels)
        return hidden[:, 0], hidden[:, self.prefix :]


def _vision(config: Any) -> Any:
    """The part about pictures, of a model of pictures and text."""
    return getattr(config, "vision_config", config)


def _required(config: Any, key: str, folder: Path) -> Any:
    value = getattr(config, key, None)
    if value is None:
        raise UserError(f"the model's configuration has no {key}: not a ViT", where=folder / "config.json")
    return value


def _pair(value: Any) -> tuple[int, int]:
    return (int(value), int(value)) if isinstance(value, int) else (int(value[0]), int(value[1]))


def _load(folder: Path, config: Any, dtype: torch.dtype) -> Any:
    """The encoder of pictures alone."""
    if config.model_type in VISION_PARTS:
        part = VISION_PARTS[config.model_type]
        return load_part(part, folder, config=config.vision_config, dtype=dtype, strip="vision_model")
    model = load_part(AutoModel, folder, dtype=dtype, optional=_OPTIONAL_WEIGHTS)
    return getattr(model, "vision_model", model)
