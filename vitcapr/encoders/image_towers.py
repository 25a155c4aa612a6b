"""Image encoders by transformers: ViTs, CLIP, SigLIP, BLIP-2 and convolutional networks."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize
from transformers import (
    AutoModel,
    Blip2VisionModel,
    Blip2VisionModelWithProjection,
    CLIPVisionModel,
    CLIPVisionModelWithProjection,
    SiglipVisionModel,
)

from vitcapr.encoders.base import NO_GRID, ImageEncoder
from vitcapr.encoders.checkpoints import load_part, read_config
from vitcapr.encoders.kinds import CONVOLUTIONAL, ITC_REMEDY, VIT_REMEDY, Output, Pool, weight_files
from vitcapr.errors import UserError

_VISION_PARTS: Mapping[str, Any] = {"clip": CLIPVisionModel, "blip-2": Blip2VisionModel}
"""The class of the image encoder in a checkpoint with a text encoder, by model type."""
_IMAGENET_SIZE = (224, 224)
_OPTIONAL_WEIGHTS = ("pooler", "mask_token")


def model_image_size(folder: Path) -> tuple[int, int]:
    """Height and width in the model's configuration; for a convolutional network without one, 224 x 224."""
    config = _vision(read_config(folder))
    if config.model_type in CONVOLUTIONAL:
        return _pair(getattr(config, "image_size", _IMAGENET_SIZE))
    return _pair(_required(config, "image_size", folder))


class Backbone:
    """A loaded ViT.

    The output has a prefix of CLS and, in some families, a distillation token or registers. Its length is the length of
    the output without the patches of the grid. The first token is the CLS vector; the rest of the prefix is dropped.

    Attributes:
        model: the network, frozen and in evaluation mode.
        options: keyword arguments of the network, without the pixels.
        grid: rows and columns of patches.
        dim: D.
        prefix: number of tokens before the patches.
        shapes: the shapes of the arrays of :meth:`features`, without the batch axis.
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
                remedy=f"{VIT_REMEDY}; for a backbone of kind: cnn no roll-out is drawn",
            )
        self.grid, resized = _patch_grid(_vision(config), size, folder)
        self.model: torch.nn.Module = _load_vit(folder, config, dtype).to(self.device)
        takes = inspect.signature(self.model.forward).parameters
        self.options: Mapping[str, Any] = (
            {"interpolate_pos_encoding": True} if resized and "interpolate_pos_encoding" in takes else {}
        )
        try:
            with torch.inference_mode():
                probe = self._hidden(torch.zeros(1, 3, *size, dtype=dtype, device=self.device))
        except (ValueError, RuntimeError) as error:
            raise _wrong_size(size, folder, error, "set image_size to the checkpoint's own") from error
        patches = self.grid[0] * self.grid[1]
        if probe.ndim != 3 or probe.shape[1] <= patches:
            raise UserError(
                f"the model's output {tuple(probe.shape)} is not a CLS token followed by {self.grid[0]} x "
                f"{self.grid[1]} patches",
                where=folder,
                remedy=VIT_REMEDY,
            )
        self.prefix, self.dim = probe.shape[1] - patches, probe.shape[2]
        self.shapes = {"patches": (patches, self.dim), "cls": (self.dim,)}

    def _hidden(self, pixels: Tensor) -> Tensor:
        hidden: Tensor = self.model(pixels, **self.options).last_hidden_state
        return hidden

    @torch.inference_mode()
    def features(self, pixels: Tensor) -> dict[str, Tensor]:
        """The arrays of a store: ``patches (B, P, D)`` and ``cls (B, D)``."""
        hidden = self._hidden(pixels)
        return {"patches": hidden[:, self.prefix :], "cls": hidden[:, 0]}


class ModelEncoder:
    """An image encoder made of a model and a function that runs it."""

    def __init__(
        self,
        model: torch.nn.Module,
        run: Callable[[Tensor], dict[str, Tensor]],
        grid: tuple[int, int],
        size: tuple[int, int],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.model, self._run, self.grid, self.device, self.dtype = model, run, grid, device, dtype
        probe = self.features(torch.zeros(1, 3, *size, dtype=dtype, device=device))
        self.shapes = {name: tuple(array.shape[1:]) for name, array in probe.items()}

    @torch.inference_mode()
    def features(self, pixels: Tensor) -> dict[str, Tensor]:
        return self._run(pixels)


def load_with_transformers(
    folder: Path,
    kind: str,
    output: Output,
    pool: Pool,
    size: tuple[int, int],
    dtype: torch.dtype,
    device: torch.device,
) -> ImageEncoder:
    """The image encoder of a checkpoint of this kind; see
    :func:`~vitcapr.encoders.image_encoders.load_image_encoder`."""
    if kind == "cnn":
        return _convolutional(folder, size, dtype, device)
    if output == "hidden" and kind != "siglip":
        return Backbone(folder, size, dtype, device)
    config = read_config(folder)
    vision = config.vision_config
    grid, resized = _patch_grid(vision, size, folder)
    options = {"interpolate_pos_encoding": True} if resized else {}
    if kind == "blip-2":
        needs: dict[str, Any] = {"remedy": ITC_REMEDY} if output == "aligned" else {"optional": ("vision_projection",)}
        model = load_part(Blip2VisionModelWithProjection, folder, config=config, dtype=dtype, **needs).to(device)
        run = _query_tokens(model, None if output == "aligned" else pool, options)
        return ModelEncoder(model, run, NO_GRID, size, device, dtype)
    part, strip = (CLIPVisionModelWithProjection, None) if kind == "clip" else (SiglipVisionModel, "vision_model")
    if kind == "clip":
        vision.projection_dim = config.projection_dim  # The tower's own may differ; get_image_features ignores it.
    model = load_part(part, folder, config=vision, dtype=dtype, strip=strip).to(device)
    if output == "hidden":
        return ModelEncoder(model, lambda pixels: _siglip_hidden(model(pixels, **options)), grid, size, device, dtype)
    if kind == "siglip" and not model.use_head:
        raise UserError("this SigLIP has no pooling head, so no aligned vector", where=folder, remedy="output: hidden")
    vector = "image_embeds" if kind == "clip" else "pooler_output"
    return ModelEncoder(model, lambda pixels: {"cls": model(pixels, **options)[vector]}, NO_GRID, size, device, dtype)


def _convolutional(folder: Path, size: tuple[int, int], dtype: torch.dtype, device: torch.device) -> ModelEncoder:
    model = load_part(AutoModel, folder, dtype=dtype).to(device)

    def run(pixels: Tensor) -> dict[str, Tensor]:
        output = model(pixels)
        return {"patches": output.last_hidden_state.flatten(2).mT, "cls": output.pooler_output.flatten(1)}

    try:
        with torch.inference_mode():
            rows, columns = model(torch.zeros(1, 3, *size, dtype=dtype, device=device)).last_hidden_state.shape[2:]
    except (ValueError, RuntimeError) as error:
        raise _wrong_size(size, folder, error, "set a larger image_size") from error
    return ModelEncoder(model, run, (rows, columns), size, device, dtype)


def _siglip_hidden(output: Any) -> dict[str, Tensor]:
    patches = output.last_hidden_state
    return {"patches": patches, "cls": patches.mean(1) if output.pooler_output is None else output.pooler_output}


def _query_tokens(model: Any, pool: Pool | None, options: Mapping[str, Any]) -> Callable[[Tensor], dict[str, Tensor]]:
    """Of BLIP-2; ``pool`` None: projected to the space of images and texts."""

    def run(pixels: Tensor) -> dict[str, Tensor]:
        patches = model.vision_model(pixels, **options).last_hidden_state
        whole = torch.ones(patches.shape[:-1], dtype=torch.long, device=patches.device)
        queries = model.query_tokens.expand(len(patches), -1, -1)
        tokens: Tensor = model.qformer(
            query_embeds=queries, encoder_hidden_states=patches, encoder_attention_mask=whole
        ).last_hidden_state
        if pool is None:
            tokens = normalize(model.vision_projection(tokens.to(model.vision_projection.weight.dtype)), dim=-1)
            return {"patches": tokens, "cls": tokens.mean(1)}
        pooled = {"mean": lambda: tokens.mean(1), "max": lambda: tokens.amax(1), "first": lambda: tokens[:, 0]}
        return {"patches": tokens, "cls": pooled[pool]()}

    return run


def _patch_grid(config: Any, size: tuple[int, int], folder: Path) -> tuple[tuple[int, int], bool]:
    """Rows and columns of patches in images of ``size``, and whether ``size`` differs from the checkpoint's."""
    patch = _pair(_required(config, "patch_size", folder))
    if size[0] % patch[0] or size[1] % patch[1]:
        raise UserError(
            f"pictures of {size[0]} x {size[1]} do not divide into patches of {patch[0]} x {patch[1]}",
            where=folder,
            remedy=f"set image_size to a multiple of {patch[0]}",
        )
    resized = _pair(_required(config, "image_size", folder)) != size
    return (size[0] // patch[0], size[1] // patch[1]), resized


def _wrong_size(size: tuple[int, int], folder: Path, error: Exception, remedy: str) -> UserError:
    what = f"the checkpoint does not run on pictures of {size[0]} x {size[1]}: {str(error)[:120]}"
    return UserError(what, where=folder, remedy=remedy)


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


def _load_vit(folder: Path, config: Any, dtype: torch.dtype) -> Any:
    """The image encoder, without the rest of the checkpoint."""
    if config.model_type in _VISION_PARTS:
        part = _VISION_PARTS[config.model_type]
        return load_part(part, folder, config=config.vision_config, dtype=dtype, strip="vision_model")
    model = load_part(AutoModel, folder, dtype=dtype, optional=_OPTIONAL_WEIGHTS)
    return getattr(model, "vision_model", model)
