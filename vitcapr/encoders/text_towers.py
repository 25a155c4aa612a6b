"""The text encoder of a checkpoint of any kind: its model and its input format.

- ``hidden``: the last layer of the text transformer, which the caller pools.
- ``aligned``: the vector in the space shared with images: the projection of CLIP or SigLIP, or of BLIP-2's Q-Former.
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

from vitcapr.encoders.checkpoints import load_part, read_config
from vitcapr.encoders.kinds import T5

Output = Literal["hidden", "aligned"]

_OPTIONAL = ("pooler", "position_ids")


@dataclass(frozen=True)
class TextModel:
    """A loaded text encoder.

    Attributes:
        room: maximum number of tokens; None: no limit.
        padded_to: every caption is padded to this number of tokens, and the model attends to the padding, as in its
            training (SigLIP). None: a batch is padded to its longest caption, and the padding is masked.
        vector: from the model's output to the vectors of the captions, (B, E); None: hidden states are pooled.
    """

    model: torch.nn.Module
    room: int | None
    padded_to: int | None = None
    vector: Callable[[Any], Tensor] | None = None


def load_text_model(folder: Path, output: Output, dtype: torch.dtype) -> TextModel:
    """Load only the text encoder of the checkpoint in ``folder``.

    Args:
        output: one that the checkpoint has (:func:`vitcapr.encoders.kinds.check_text_encoder`). ``aligned`` is the
            vector of ``get_text_features``. Only BLIP-2's has length 1.
        dtype: dtype of the weights.

    Raises:
        UserError: the checkpoint lacks weights.
    """
    config = read_config(folder)
    kind = config.model_type
    if kind == "clip":
        config.text_config.projection_dim = config.projection_dim  # The tower's own may differ.
        return _clip(folder, config.text_config, output, dtype)
    if kind == "siglip":
        return _siglip(folder, config.text_config, output, dtype)
    if output == "aligned":
        return _blip2_contrastive(folder, config, dtype)
    if kind == "blip-2":
        return _blip2_language(folder, config.text_config, dtype)
    room = getattr(getattr(config, "text_config", config), "max_position_embeddings", None)
    if kind in T5:
        return TextModel(load_part(AutoModelForTextEncoding, folder, dtype=dtype, optional=_OPTIONAL), room)
    model = load_part(AutoModel, folder, dtype=dtype, optional=_OPTIONAL)
    encoder = model.get_encoder() if model.config.is_encoder_decoder else getattr(model, "text_model", model)
    return TextModel(encoder, room)


def _clip(folder: Path, config: Any, output: Output, dtype: torch.dtype) -> TextModel:
    room = config.max_position_embeddings
    if output == "hidden":
        return TextModel(load_part(CLIPTextModel, folder, config=config, dtype=dtype, strip="text_model"), room)
    model = load_part(CLIPTextModelWithProjection, folder, config=config, dtype=dtype)
    return TextModel(model, room, vector=lambda output: output.text_embeds)


def _siglip(folder: Path, config: Any, output: Output, dtype: torch.dtype) -> TextModel:
    room = config.max_position_embeddings
    model = load_part(SiglipTextModel, folder, config=config, dtype=dtype, strip="text_model")
    vector = (lambda states: states.pooler_output) if output == "aligned" else None
    return TextModel(model, room, padded_to=room, vector=vector)


def _blip2_contrastive(folder: Path, config: Any, dtype: torch.dtype) -> TextModel:
    """The Q-Former read as a BERT: the vector is the projection of its first token."""
    model = load_part(
        Blip2TextModelWithProjection,
        folder,
        config=config,
        dtype=dtype,
        remedy="output: aligned needs a checkpoint with contrastive projections, such as Salesforce/blip2-itm-vit-g",
    )
    room = config.qformer_config.max_position_embeddings
    return TextModel(model, room, vector=lambda output: output.text_embeds[:, 0])


def _blip2_language(folder: Path, config: Any, dtype: torch.dtype) -> TextModel:
    model = load_part(
        AutoModelForTextEncoding,
        folder,
        config=config,
        dtype=dtype,
        strip="language_model",
        optional=_OPTIONAL,
        remedy="output: hidden needs a checkpoint with its language model; an itm checkpoint has output: aligned",
    )
    return TextModel(model, None)
