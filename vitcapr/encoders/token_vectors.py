"""The vectors of the tokens of sentences, in context, by a frozen text encoder."""

from collections.abc import Sequence

import numpy as np
import torch

from vitcapr.encoders.text_encoders import TextEncoder
from vitcapr.errors import UserError


class TokenVectors:
    """Computes the vector of each token of sentences.

    Attributes:
        special: the tokens that frame a sentence or fill it up.
    """

    def __init__(self, encoder: TextEncoder, layer: int | None, batch: int) -> None:
        """Args:
            encoder: of output ``hidden``.
            layer: the hidden layer, counted from 1; None: the last one.
            batch: sentences in one forward pass.

        Raises:
            UserError: the encoder has no such layer.
        """
        self._encoder, self._layer, self._batch = encoder, layer, batch
        tokenizer = encoder.tokenizer
        ids = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id)
        self.special = {token for token in (*ids, tokenizer.pad_token_id) if token is not None}
        if layer is not None:
            layers = len(self._states(encoder.tokenize(["a"]))) - 1
            if layer > layers:
                remedy = f"set layer to a number from 1 to {layers}, or leave it out"
                raise UserError(f"the text encoder has {layers} layers, not {layer}", remedy=remedy)

    def __call__(self, tokens: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """(T, D) float32 for each sentence of T tokens, in the given order."""
        order = sorted(range(len(tokens)), key=lambda index: len(tokens[index]))
        found: list[np.ndarray] = [np.empty(0)] * len(tokens)
        for first in range(0, len(order), self._batch):
            chosen = order[first : first + self._batch]
            hidden = self._states([list(tokens[index]) for index in chosen])[-1 if self._layer is None else self._layer]
            for index, vectors in zip(chosen, hidden.float().cpu().numpy(), strict=True):
                found[index] = vectors[: len(tokens[index])]
        return found

    @torch.inference_mode()
    def _states(self, tokens: list[list[int]]) -> Sequence[torch.Tensor]:
        """The outputs of the embeddings and of each layer, or only that of the last layer."""
        padded = self._encoder.tokenizer.pad({"input_ids": tokens}, padding_side="right", return_tensors="pt")
        device = next(self._encoder.model.parameters()).device
        all_of_them = self._layer is not None
        output = self._encoder.model(**padded.to(device), output_hidden_states=all_of_them)
        states: Sequence[torch.Tensor] = output.hidden_states if all_of_them else [output.last_hidden_state]
        return states
