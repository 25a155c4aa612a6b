"""The text encoder of a checkpoint of transformers: its model and its input format.

- ``hidden``: the last layer of the text transformer, which the caller pools.
- ``aligned``: the vector in the space shared with images: ``get_text_features``, or of BLIP-2's Q-Former.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import AutoModelForTextEncoding, Blip2TextModelWithProjection

from vitcapr.encoders.checkpoints import load_half, load_part, read_config
from vitcapr.encoders.kinds import ITC_REMEDY, T5
from vitcapr.errors import UserError

Output = Literal["hidden", "aligned"]

_LANGUAGE_REMEDY = "output: hidden needs a checkpoint with its language model; an itm checkpoint has output: aligned"


@dataclass(frozen=True)
class TextModel:
    """A loaded text encoder.

    Attributes:
        run: from token ids (B, T) and mask, by name, to hidden states (B, T, D) or vectors of captions (B, E).
        room: maximum number of tokens; None: no limit.
        padded_to: every caption is padded to this number of tokens, and the model attends to the padding, as in its
            training (SigLIP). None: a batch is padded to its longest caption, and the padding is masked.
    """

    model: torch.nn.Module
    run: Callable[..., Tensor]
    room: int | None
    padded_to: int | None = None


def load_text_model(folder: Path, output: Output, dtype: torch.dtype, device: torch.device) -> TextModel:
    """Load only the text encoder of the checkpoint in ``folder``.

    Args:
        output: one that the checkpoint has (:func:`vitcapr.encoders.kinds.check_text_encoder`). ``aligned`` is the
            vector of ``get_text_features``. Only BLIP-2's has length 1.
        dtype: dtype of the weights.

    Raises:
        UserError: the checkpoint lacks weights, or its model has no such output.
    """
    config = read_config(folder)
    kind, text = config.model_type, getattr(config, "text_config", config)
    room = getattr(text, "max_position_embeddings", None)
    padded_to = room if kind.startswith("siglip") else None
    if kind == "blip-2" and output == "aligned":
        # The Q-Former read as a BERT: the vector is the projection of its first token.
        model = load_part(Blip2TextModelWithProjection, folder, config=config, dtype=dtype, remedy=ITC_REMEDY).to(
            device
        )
        room = config.qformer_config.max_position_embeddings
        return TextModel(model, lambda **tokens: model(**tokens).text_embeds[:, 0], room)
    if kind == "blip-2":
        options: dict[str, Any] = {"strip": "language_model", "optional": ("pooler",), "remedy": _LANGUAGE_REMEDY}
        model = load_part(AutoModelForTextEncoding, folder, dtype=dtype, config=text, **options)
        room = None
    elif kind in T5:
        model = load_part(AutoModelForTextEncoding, folder, dtype=dtype)
    else:
        if kind == "aimv2":  # Its fast attention sees the padding, or with none what follows.
            config._attn_implementation = "eager"
        model = load_half(folder, config, dtype, "text")
    if output == "aligned":
        if not hasattr(model, "get_text_features"):
            remedy = "use output: hidden, or a checkpoint like CLIP or SigLIP"
            raise UserError(f"a {kind} has no output 'aligned'", where=folder, remedy=remedy)
        return TextModel(model.to(device), lambda **tokens: _pooled(model.get_text_features(**tokens)), room, padded_to)
    encoder = model.get_encoder() if model.config.is_encoder_decoder else getattr(model, "text_model", model)
    return TextModel(encoder.to(device), lambda **tokens: encoder(**tokens).last_hidden_state, room, padded_to)


def _pooled(output: Any) -> Tensor:
    vectors: Tensor = output if isinstance(output, Tensor) else output.pooler_output
    return vectors
