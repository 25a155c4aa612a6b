"""The text encoder of a checkpoint of transformers: its model and its input format.

- ``hidden``: the last layer of the text transformer, which the caller pools.
- ``aligned``: the vector in the space shared with images: ``get_text_features``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from transformers import AutoModelForTextEncoding

from vitcapr.encoders.checkpoints import load_half, load_part, read_config
from vitcapr.encoders.kinds import T5
from vitcapr.errors import UserError

Output = Literal["hidden", "aligned"]

_LANGUAGE_REMEDY = "name a checkpoint with its language model, such as Salesforce/blip2-flan-t5-xl"


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
            vector of ``get_text_features``.
        dtype: dtype of the weights.

    Raises:
        UserError: the checkpoint lacks weights, or its model has no such output.
    """
    config = read_config(folder)
    kind, text = config.model_type, getattr(config, "text_config", config)
    room = getattr(text, "max_position_embeddings", None)
    padded_to = room if kind.startswith("siglip") else None
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
