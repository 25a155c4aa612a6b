"""The log-likelihood of captions by a language model that sees no image."""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from vitcapr.encoders.checkpoints import LOCAL, locate
from vitcapr.encoders.kinds import weight_files
from vitcapr.encoders.text_encoders import by_length
from vitcapr.errors import UserError
from vitcapr.metrics.bootstrap import Array
from vitcapr.studies.compositional import Scorer

_BATCH = 32


def blind_scorer(source: str) -> Scorer:
    """The sum of the log-probabilities of a caption's tokens after the token that begins a text.

    Args:
        source: a causal language model of transformers: a hub id or a folder, looked up under ``VITCAPR_BACKBONES``.

    Raises:
        UserError: it is not found, has no safetensors, or has no token that begins or ends a text.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = locate(source, "main").folder
    weight_files(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder, **LOCAL)
    model = AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, dtype=torch.float32, **LOCAL).eval()
    begin = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    if begin is None:
        raise UserError("the language model has no token that begins a text", where=folder, remedy="give another")

    @torch.inference_mode()
    def score(images: Sequence[str], captions: Sequence[str]) -> Array:  # noqa: ARG001
        tokens = [[begin, *tokenizer(text, add_special_tokens=False)["input_ids"]] for text in captions]
        scores = np.empty(len(tokens))
        for places in by_length(tokens, _BATCH):
            length = max(len(tokens[place]) for place in places)
            padded = torch.tensor([tokens[place] + [-1] * (length - len(tokens[place])) for place in places])
            real = padded >= 0
            read = padded.clamp(min=0)
            logits = model(input_ids=read, attention_mask=real.long()).logits[:, :-1].float()
            each = functional.cross_entropy(logits.transpose(1, 2), read[:, 1:], reduction="none")
            scores[places] = -(each * real[:, 1:]).sum(1).double().numpy()
        return scores

    return score
