"""The vectors of sentences and tokens by which captions are scored."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitcapr.encoders.checkpoints import by_length, source_name, weights_digest
from vitcapr.encoders.precision import resolve_device
from vitcapr.encoders.text_encoders import TextEncoder, TextRecipe
from vitcapr.encoders.text_towers import WordVectorEncoder
from vitcapr.errors import UserError

_BATCH = 64


class SentenceVectors:
    """Gives the vectors of sentences.

    Args:
        encoder: the other attributes of a :class:`TextRecipe`.

    Attributes:
        name: the encoder and the first digits of its weights' digest, for a protocol.
        weights: SHA-256 of the weights.
        pool: the pooling of its tokens.
        encoder: loaded when it is first used; its ``dim`` is D, the length of a vector.
    """

    def __init__(self, source: str, *, device: str, **encoder: Any) -> None:
        self._recipe = TextRecipe(source, resolve_device(device), **encoder)
        self.weights, self.pool = weights_digest(self._recipe.checkpoint.folder), self._recipe.pooling
        self.name = f"{source_name(source)}@{self.weights[:12]}"

    @cached_property
    def encoder(self) -> TextEncoder | WordVectorEncoder:
        return self._recipe.load()

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """(n, D) float32."""
        return self.encoder.encode(sentences)

    def check_images(self, attributes: Mapping[str, Any], width: int | None, where: Path) -> None:
        """Check that vectors of images, ``width`` wide, can be compared with these.

        Args:
            attributes: of their store; ``where`` is its manifest.

        Raises:
            UserError: the store is not of the image half of the encoder's model.
        """
        if attributes.get("output") != "aligned" or width != self.encoder.dim:
            what = "CLIPScore needs the vectors of the space that images and texts share"
            remedy = "set output: aligned for its backbone and its text encoder"
            raise UserError(what, where=where, remedy=remedy)
        if attributes["weights_sha256"] != self.weights:
            what = f"the features are of {attributes['backbone']}, and {self.name} is another model"
            remedy = "name the same checkpoint as backbone and as text encoder of metrics.clip_score"
            raise UserError(what, where=where, remedy=remedy)

    def tokens(self, layer: int | None) -> tuple[TextEncoder, "TokenVectors"]:
        """Return the encoder, and the vectors of its tokens from a hidden layer, None for the last.

        Raises:
            UserError: it gives no vectors of tokens.
        """
        if self._recipe.output != "hidden" or not isinstance(self.encoder, TextEncoder):
            what = f"BERTScore compares tokens, and the text encoder has output: {self._recipe.output}"
            raise UserError(what, where=self.name, remedy="name a text encoder with output: hidden")
        return self.encoder, TokenVectors(self.encoder, layer)


class TokenVectors:
    """Computes the vector of each token of sentences, in context.

    Attributes:
        special: the tokens that frame a sentence or fill it up.
    """

    def __init__(self, encoder: TextEncoder, layer: int | None) -> None:
        """Take the token vectors of ``layer``, counted from 1, of an encoder of output ``hidden``; None: the last."""
        self._encoder, self._layer = encoder, layer
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
        vectors = {}
        for some in by_length(tokens, _BATCH):
            hidden = self._states([list(tokens[index]) for index in some])[-1 if self._layer is None else self._layer]
            for index, padded in zip(some, hidden.float().cpu().numpy(), strict=True):
                vectors[index] = padded[: len(tokens[index])]
        return [vectors[index] for index in range(len(tokens))]

    @torch.inference_mode()
    def _states(self, tokens: list[list[int]]) -> list[Tensor]:
        """Return the outputs of the embeddings and of each layer, or only that of the last layer."""
        padded = self._encoder.tokenizer.pad({"input_ids": tokens}, padding_side="right", return_tensors="pt")
        device = next(self._encoder.model.parameters()).device
        output = self._encoder.model(**padded.to(device), output_hidden_states=self._layer is not None)
        return [output.last_hidden_state] if self._layer is None else list(output.hidden_states)
