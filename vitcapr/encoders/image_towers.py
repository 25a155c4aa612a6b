"""Image encoders by transformers: networks that map pixels to tokens or to a feature map, and BLIP-2."""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize
from transformers import Blip2VisionModel, Blip2VisionModelWithProjection

from vitcapr.encoders.checkpoint_kinds import (
    ITC_REMEDY,
    VIT_REMEDY,
    Output,
    Pool,
    image_kind,
    open_clip_config,
    weight_files,
)
from vitcapr.encoders.checkpoints import load_half, load_part, read_config
from vitcapr.encoders.network_checks import NO_GRID, ImageEncoder, PixelArguments, first_patch, pair, patch_size
from vitcapr.errors import UserError

_IMAGENET_SIZE = (224, 224)
_TIMM_ARGUMENTS = ("architecture", "global_pool", "act_layer", "norm_layer")
_TIMM_RESIZES = ("vit_", "deit", "eva", "beit")
"""Architectures of timm that interpolate their position embeddings."""
_STRIDES = (4, 8, 16, 32, 64)
"""Pixels of the picture for each row of a last stage, in networks with stages."""


def model_image_size(folder: Path) -> tuple[int, int]:
    """Height and width in the model's configuration; 224 x 224 if it has none."""
    if image_kind(folder) == "open-clip":
        model, preprocessing = open_clip_config(folder)
        return pair(preprocessing.get("size", model["vision_cfg"].get("image_size", 224)))
    config = _vision(read_config(folder))
    if getattr(config, "pretrained_cfg", None):  # Of timm.
        return pair(config.pretrained_cfg["input_size"][1:])
    if config.model_type.startswith("siglip2"):
        return pair(round(config.num_patches**0.5) * config.patch_size)
    if hasattr(config, "vocab_size") and not hasattr(config, "num_channels"):
        raise UserError(f"a {config.model_type} does not read pictures", where=folder, remedy=VIT_REMEDY)
    return pair(getattr(config, "image_size", None) or _IMAGENET_SIZE)


class Backbone:
    """A network of transformers whose output is tokens or a feature map.

    Tokens may have a prefix of CLS, a distillation token, and registers; what is not ``cls`` is dropped. The length of
    the prefix is measured (:func:`~vitcapr.encoders.network_checks.first_patch`).

    Attributes:
        model: the network, frozen and in evaluation mode.
        options: keyword arguments of the network, without the pixels.
        grid: rows and columns of patches.
        dim: D.
        prefix: number of tokens before the patches.
        token: number of the token that is ``cls``; None: another vector is.
        cls_is: what ``cls`` is, in words.
        shapes: the shapes of the arrays of :meth:`features`, without the batch axis.
    """

    def __init__(
        self,
        folder: Path,
        size: tuple[int, int],
        dtype: torch.dtype,
        device: torch.device | None = None,
    ) -> None:
        """Load a checkpoint.

        Args:
            folder: a checkpoint in transformers' format, weights as safetensors.
            size: height and width of the images; if they differ from the checkpoint's, position embeddings are
                interpolated.
            dtype: of weights and arithmetic.

        Raises:
            UserError: the network does not run on images of this size, or its patches are not row by row.
        """
        weight_files(folder)
        self.size, self.dtype, self.device, self._folder = size, dtype, device or torch.device("cpu"), folder
        config = read_config(folder)
        patch = patch_size(_vision(config), size, folder)
        self.model: torch.nn.Module = _load(folder, config, size, dtype).to(self.device)
        if timm := getattr(self.model, "timm_model", None):
            patch = getattr(getattr(timm, "patch_embed", None), "patch_size", None)
        self._pixels = PixelArguments(self.model.forward, size, _vision(config), patch)
        self.options = self._pixels.options
        probe = torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(0)).to(self.device, dtype)
        try:
            with torch.inference_mode():
                hidden, pooled, self.grid = self._output(probe)
        except UserError:
            raise
        except Exception as error:  # Each network has its own way to say that it does not do.
            what = f"the checkpoint does not run on pictures of {size[0]} x {size[1]}: {str(error)[:120]}"
            remedy = "set image_size to the checkpoint's own or a larger one, or use a network for single pictures"
            raise UserError(what, where=folder, remedy=remedy) from error
        tokens, self.dim = hidden.shape[1:]
        if self.grid == NO_GRID:
            strides = [patch] if patch else []
            strides += [(stride, stride) for stride in _STRIDES]
            grids = [(size[0] // down, size[1] // right) for down, right in strides]
            self.grid = next((grid for grid in grids if 0 < grid[0] * grid[1] <= tokens), NO_GRID)
        patches = self.grid[0] * self.grid[1]
        self.prefix = tokens - patches
        with torch.inference_mode():
            first = first_patch(self.model, self._output, probe, self.grid, tokens) if patches else -1
        if first not in (None, self.prefix) or (first is None and self.prefix > 1):
            cells = f"{self.grid[0]} x {self.grid[1]} patches row by row"
            what = f"the {tokens} tokens of the output are not a prefix and then {cells}"
            raise UserError(what, where=folder, remedy=VIT_REMEDY)
        self._type = config.model_type
        self.token = 0 if self.prefix else None
        self._pools = self.token is None and pooled is not None
        token = f"token 0 of {self.prefix} before the patches"
        self.cls_is = "the pooled output" if self._pools else "the mean of the patches" if self.token is None else token
        arrays = self.features(probe)
        self.shapes = {name: tuple(array.shape[1:]) for name, array in arrays.items()}

    def require_cls(self) -> None:
        """Check that the network has a CLS token."""
        if not self.prefix:
            what = f"the network ({self._type}) has no CLS token"
            raise UserError(what, where=self._folder, remedy=VIT_REMEDY)

    def _output(self, pixels: Tensor) -> tuple[Tensor, Tensor | None, tuple[int, int]]:
        """Tokens (B, T, D), the pooled output (B, E), and the grid of a feature map."""
        output = self.model(**self._pixels(pixels))
        hidden, pooled = output.last_hidden_state, getattr(output, "pooler_output", getattr(output, "summary", None))
        grid = NO_GRID
        if hidden.ndim == 4:
            timm = getattr(self.model, "timm_model", None)
            if timm is None or hidden.shape[1] == timm.num_features:  # Channels first, but for some of timm.
                hidden = hidden.permute(0, 2, 3, 1)
            grid = (hidden.shape[1], hidden.shape[2])
        # Some networks put the patches of all pictures into one row.
        hidden = hidden.reshape(len(pixels), -1, hidden.shape[-1])
        return hidden, None if pooled is None else pooled.flatten(1), grid

    @torch.inference_mode()
    def features(self, pixels: Tensor) -> dict[str, Tensor]:
        """Return the arrays of a store: ``patches (B, P, D)`` and ``cls (B, D)``."""
        hidden, pooled, _ = self._output(pixels)
        patches = hidden[:, self.prefix :]
        if self._pools and pooled is not None:
            return {"patches": patches, "cls": pooled}
        return {"patches": patches, "cls": patches.mean(1) if self.token is None else hidden[:, self.token]}


class ModelEncoder:
    """An image encoder made of a model and a function that runs it; its arrays have no place in the image."""

    grid = NO_GRID

    def __init__(
        self,
        model: torch.nn.Module,
        run: Callable[[Tensor], dict[str, Tensor]],
        size: tuple[int, int],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.model, self._run, self.device, self.dtype = model, run, device, dtype
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
    """Return the image encoder of a checkpoint of this kind.

    See :func:`~vitcapr.encoders.image_encoders.load_image_encoder`.
    """
    if output == "hidden":
        return Backbone(folder, size, dtype, device)
    config = read_config(folder)
    vision = _vision(config)
    patch = patch_size(vision, size, folder)
    if kind == "blip-2":
        needs: dict[str, Any] = {"remedy": ITC_REMEDY} if output == "aligned" else {"optional": ("vision_projection",)}
        model = load_part(Blip2VisionModelWithProjection, folder, config=config, dtype=dtype, **needs).to(device)
        options = PixelArguments(model.vision_model.forward, size, vision, patch).options
        return ModelEncoder(
            model, _query_tokens(model, None if output == "aligned" else pool, options), size, device, dtype
        )
    model = load_half(folder, config, dtype, "image").to(device)
    arguments = PixelArguments(model.get_image_features, size, vision, patch)

    def aligned(pixels: Tensor) -> dict[str, Tensor]:
        output = model.get_image_features(**arguments(pixels))
        vector = output if isinstance(output, Tensor) else output.pooler_output
        if vector is None or vector.ndim != 2:
            what = f"this {config.model_type} has no pooled, so no aligned vector"
            raise UserError(what, where=folder, remedy="set output: hidden")
        return {"cls": vector}

    return ModelEncoder(model, aligned, size, device, dtype)


def _query_tokens(model: Any, pool: Pool | None, options: Mapping[str, Any]) -> Callable[[Tensor], dict[str, Tensor]]:
    """Return a function for the query tokens of BLIP-2, projected to the image-text space if ``pool`` is None."""

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


def _load(folder: Path, config: Any, size: tuple[int, int], dtype: torch.dtype) -> Any:
    """Return the image encoder, without the rest of the checkpoint."""
    if config.model_type == "blip-2":
        return load_part(Blip2VisionModel, folder, config=config.vision_config, dtype=dtype, strip="vision_model")
    if hasattr(config, "mask_ratio"):
        config.mask_ratio = 0.0
    if getattr(config, "pretrained_cfg", None):
        _check_timm(config, folder)
        arguments = {name: value for name, value in (config.model_args or {}).items() if name != "num_classes"}
        if model_image_size(folder) != size and config.architecture.startswith(_TIMM_RESIZES):
            arguments["dynamic_img_size"] = True
        config.model_args = arguments
    model = load_half(folder, config, dtype, "image")
    names = ("vision_model", "image_model")
    return next((getattr(model, name) for name in names if hasattr(model, name)), model)


def _check_timm(config: Any, folder: Path) -> None:
    """Check that timm is installed and that its arguments open no other file or address."""
    if importlib.util.find_spec("timm") is None:
        remedy = "pip install 'vitcapr[timm]'"
        raise UserError("timm, which reads this checkpoint, is not installed", where=folder, remedy=remedy)
    values = {"architecture": config.architecture, **(config.model_args or {})}
    unsafe = [name for name, value in values.items() if name not in _TIMM_ARGUMENTS and isinstance(value, str | dict)]
    if unsafe or ":" in config.architecture:
        what = f"the configuration of timm sets '{(unsafe or ['architecture'])[0]}', which may open another checkpoint"
        raise UserError(what, where=folder / "config.json", remedy="leave it out there")


def _vision(config: Any) -> Any:
    """Return the configuration of the image encoder."""
    part = getattr(config, "vision_config", getattr(config, "image_config", None))
    return config if part is None or isinstance(part, dict) else part
