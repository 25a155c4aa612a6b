"""The text encoder of a checkpoint of any kind: its model and its input format.

- ``hidden``: the last layer of the text transformer, which the caller pools.
- ``aligned``: the vector in the space shared with images: the projection of CLIP or SigLIP, or of BLIP-2's Q-Former.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
from vitcapr.encoders.kinds import ITC_REMEDY, T5

Output = Literal["hidden", "aligned"]

_OPTIONAL = ("pooler", "position_ids")
_LANGUAGE_REMEDY = "output: hidden needs a checkpoint with its language model; an itm checkpoint has output: aligned"


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
    kind, text = config.model_type, getattr(config, "text_config", config)
    room = getattr(text, "max_position_embeddings", None)
    load = partial(load_part, folder=folder, dtype=dtype)
    if kind == "clip" and output == "aligned":
        text.projection_dim = config.projection_dim  # The tower's own may differ.
        model = load(CLIPTextModelWithProjection, config=text)
        return TextModel(model, room, vector=lambda states: states.text_embeds)
    if kind == "clip":
        return TextModel(load(CLIPTextModel, config=text, strip="text_model"), room)
    if kind == "siglip":
        model = load(SiglipTextModel, config=text, strip="text_model")
        vector = (lambda states: states.pooler_output) if output == "aligned" else None
        return TextModel(model, room, padded_to=room, vector=vector)
    if output == "aligned":  # BLIP-2's Q-Former read as a BERT: the vector is the projection of its first token.
        model = load(Blip2TextModelWithProjection, config=config, remedy=ITC_REMEDY)
        room = config.qformer_config.max_position_embeddings
        return TextModel(model, room, vector=lambda states: states.text_embeds[:, 0])
    load = partial(load, optional=_OPTIONAL)
    if kind == "blip-2":
        model = load(AutoModelForTextEncoding, config=text, strip="language_model", remedy=_LANGUAGE_REMEDY)
        return TextModel(model, None)
    if kind in T5:
        return TextModel(load(AutoModelForTextEncoding), room)
    model = load(AutoModel)
    encoder = model.get_encoder() if model.config.is_encoder_decoder else getattr(model, "text_model", model)
    return TextModel(encoder, room)
