"""Image encoders by transformers: CLIP, SigLIP, BLIP-2, convolutional networks and the ViTs that are not plain."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize
from transformers import AutoModel, Blip2VisionModelWithProjection, CLIPVisionModelWithProjection, SiglipVisionModel

from vitcapr.encoders.backbones import Backbone, patch_grid, wrong_size
from vitcapr.encoders.image_encoders import NO_GRID, ImageEncoder, Output, Pool
from vitcapr.encoders.loading import load_part, read_config
from vitcapr.errors import UserError

_ITC_REMEDY = "output: aligned needs a checkpoint with contrastive projections, such as Salesforce/blip2-itm-vit-g"


class LoadedImageEncoder:
    """An image encoder made of a model and a function that runs it; see :func:`load_with_transformers`."""

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
    named: str,
    output: Output,
    pool: Pool,
    size: tuple[int, int],
    dtype: torch.dtype,
    device: torch.device,
) -> ImageEncoder:
    """The image encoder of a checkpoint of the kind ``named``.

    The arguments, the arrays and the errors are those of
    :func:`~vitcapr.encoders.image_encoders.load_image_encoder`.
    """
    if named == "cnn":
        return _convolutional(folder, size, dtype, device)
    if output == "hidden" and named != "siglip":
        return Backbone(folder, size, dtype, device)
    config = read_config(folder)
    vision = config.vision_config
    grid, resized = patch_grid(vision, size, folder)
    options = {"interpolate_pos_encoding": True} if resized else {}
    if named == "blip-2":
        return _blip2(folder, config, output, pool, size, dtype, device, options)
    part, strip = (CLIPVisionModelWithProjection, None) if named == "clip" else (SiglipVisionModel, "vision_model")
    model = load_part(part, folder, config=vision, dtype=dtype, strip=strip).to(device)
    if output == "hidden":
        return LoadedImageEncoder(
            model, lambda pixels: _siglip_hidden(model(pixels, **options)), grid, size, device, dtype
        )
    if named == "siglip" and not model.use_head:
        raise UserError("this SigLIP has no pooling head, so no aligned vector", where=folder, remedy="output: hidden")
    vector = "image_embeds" if named == "clip" else "pooler_output"
    return LoadedImageEncoder(
        model, lambda pixels: {"cls": model(pixels, **options)[vector]}, NO_GRID, size, device, dtype
    )


def _convolutional(folder: Path, size: tuple[int, int], dtype: torch.dtype, device: torch.device) -> LoadedImageEncoder:
    model = load_part(AutoModel, folder, dtype=dtype).to(device)

    def run(pixels: Tensor) -> dict[str, Tensor]:
        output = model(pixels)
        return {"patches": output.last_hidden_state.flatten(2).mT, "cls": output.pooler_output.flatten(1)}

    try:
        with torch.inference_mode():
            rows, columns = model(torch.zeros(1, 3, *size, dtype=dtype, device=device)).last_hidden_state.shape[2:]
    except (ValueError, RuntimeError) as error:
        raise wrong_size(size, folder, error, "set a larger image_size") from error
    return LoadedImageEncoder(model, run, (rows, columns), size, device, dtype)


def _siglip_hidden(output: Any) -> dict[str, Tensor]:
    patches = output.last_hidden_state
    return {"patches": patches, "cls": patches.mean(1) if output.pooler_output is None else output.pooler_output}


def _blip2(
    folder: Path,
    config: Any,
    output: Output,
    pool: Pool,
    size: tuple[int, int],
    dtype: torch.dtype,
    device: torch.device,
    options: Mapping[str, Any],
) -> LoadedImageEncoder:
    aligned = output == "aligned"
    model = load_part(
        Blip2VisionModelWithProjection,
        folder,
        config=config,
        dtype=dtype,
        optional=() if aligned else ("vision_projection",),
        remedy=_ITC_REMEDY if aligned else "fetch the checkpoint again",
    ).to(device)

    def tokens_of(pixels: Tensor) -> Tensor:
        seen = model.vision_model(pixels, **options).last_hidden_state
        whole = torch.ones(seen.shape[:-1], dtype=torch.long, device=seen.device)
        queries = model.query_tokens.expand(len(seen), -1, -1)
        tokens: Tensor = model.qformer(
            query_embeds=queries, encoder_hidden_states=seen, encoder_attention_mask=whole
        ).last_hidden_state
        return tokens

    def run(pixels: Tensor) -> dict[str, Tensor]:
        tokens = tokens_of(pixels)
        if aligned:
            tokens = normalize(model.vision_projection(tokens.to(model.vision_projection.weight.dtype)), dim=-1)
            return {"patches": tokens, "cls": tokens.mean(1)}
        pooled = {"mean": lambda: tokens.mean(1), "max": lambda: tokens.amax(1), "first": lambda: tokens[:, 0]}
        return {"patches": tokens, "cls": pooled[pool]()}

    return LoadedImageEncoder(model, run, NO_GRID, size, device, dtype)
