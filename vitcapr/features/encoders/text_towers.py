"""The text half of a checkpoint, whatever its kind: its model, and how it wants its captions.

``hidden`` is the last layer of the text transformer, to be pooled. ``aligned`` is the vector that the checkpoint
compares with that of an image: CLIP's and SigLIP's projection, or the Q-Former's for BLIP-2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import (
    AutoModel,
    AutoModelForTextEncoding,
    Blip2TextModelWithProjection,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    SiglipTextModel,
)

from vitcapr.errors import UserError
from vitcapr.features.encoders.loading import load_part, read_config

Output = Literal["hidden", "aligned"]

_OPTIONAL = ("pooler", "position_ids")
_T5 = ("t5", "mt5", "umt5")


@dataclass(frozen=True)
class TextTower:
    """A loaded text half.

    Attributes:
        room: the most tokens it reads; None where nothing limits them.
        padded_to: every caption is filled up to so many tokens, and the filling is attended to as it was in training
            (SigLIP); None pads a batch to its longest and masks the rest.
        vector: takes the model's output to its own vector of each caption, (B, E); None: hidden states are pooled.
    """

    model: torch.nn.Module
    room: int | None
    padded_to: int | None = None
    vector: Callable[[Any], Tensor] | None = None


def load_text_tower(folder: Path, output: Output, dtype: torch.dtype) -> TextTower:
    """Load the text half, and nothing else, of the checkpoint in ``folder``.

    Args:
        output: ``aligned`` for the vector that is compared with an image's, as ``get_text_features`` gives it; BLIP-2's
            is of length 1, the others' are not.
        dtype: of the weights.

    Raises:
        UserError: the checkpoint has no such output, or lacks weights.
    """
    config = read_config(folder)
    kind = config.model_type
    if kind == "clip":
        return _clip(folder, config.text_config, output, dtype)
    if kind == "siglip":
        return _siglip(folder, config.text_config, output, dtype)
    if output == "aligned":
        if kind == "blip-2":
            return _blip2_contrastive(folder, config, dtype)
        what = f"a text encoder of kind {kind} has no output 'aligned'"
        raise UserError(what, where=folder, remedy="set output: hidden, or use CLIP, SigLIP or BLIP-2")
    if kind == "blip-2":
        return _blip2_language(folder, config.text_config, dtype)
    room = getattr(getattr(config, "text_config", config), "max_position_embeddings", None)
    if kind in _T5:
        return TextTower(load_part(AutoModelForTextEncoding, folder, dtype=dtype, optional=_OPTIONAL), room)
    model = load_part(AutoModel, folder, dtype=dtype, optional=_OPTIONAL)
    encoder = model.get_encoder() if model.config.is_encoder_decoder else getattr(model, "text_model", model)
    return TextTower(encoder, room)


def _clip(folder: Path, config: Any, output: Output, dtype: torch.dtype) -> TextTower:
    room = config.max_position_embeddings
    if output == "hidden":
        return TextTower(load_part(CLIPTextModel, folder, config=config, dtype=dtype, strip="text_model"), room)
    model = load_part(CLIPTextModelWithProjection, folder, config=config, dtype=dtype)
    return TextTower(model, room, vector=lambda made: made.text_embeds)


def _siglip(folder: Path, config: Any, output: Output, dtype: torch.dtype) -> TextTower:
    room = config.max_position_embeddings
    model = load_part(SiglipTextModel, folder, config=config, dtype=dtype, strip="text_model")
    vector = (lambda made: made.pooler_output) if output == "aligned" else None
    return TextTower(model, room, padded_to=room, vector=vector)


def _blip2_contrastive(folder: Path, config: Any, dtype: torch.dtype) -> TextTower:
    """The Q-Former read as a BERT: the vector is the projection of its first token."""
    model = load_part(
        Blip2TextModelWithProjection,
        folder,
        config=config,
        dtype=dtype,
        remedy="output: aligned needs a checkpoint with contrastive projections, such as Salesforce/blip2-itm-vit-g",
    )
    room = config.qformer_config.max_position_embeddings
    return TextTower(model, room, vector=lambda made: made.text_embeds[:, 0])


def _blip2_language(folder: Path, config: Any, dtype: torch.dtype) -> TextTower:
    if config.model_type not in _T5:
        what = f"the language model of this BLIP-2 ({config.model_type}) has no encoder of text"
        raise UserError(what, where=folder, remedy="use a flan-t5 checkpoint, or output: aligned of an itm checkpoint")
    model = load_part(
        AutoModelForTextEncoding,
        folder,
        config=config,
        dtype=dtype,
        strip="language_model",
        optional=_OPTIONAL,
        remedy="output: hidden needs a checkpoint with its language model; an itm checkpoint has output: aligned",
    )
    return TextTower(model, None)
