"""The vectors of sentences and tokens by which captions are scored."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from vitcapr.encoders.checkpoints import source_name, weights_digest
from vitcapr.encoders.precision import resolve_device
from vitcapr.encoders.text_encoders import (
    TextEncoder,
    TokenVectors,
    WordVectorEncoder,
    load_text_encoder,
    locate_text_encoder,
    pooling,
)
from vitcapr.errors import UserError


class SentenceVectors:
    """Gives the vectors of sentences.

    Args:
        encoder: the other arguments of :func:`load_text_encoder`.

    Attributes:
        name: the encoder and the first digits of its weights' digest, for a protocol.
        weights: SHA-256 of the weights.
        pool: the pooling of its tokens.
        encoder: loaded when it is first used; its ``dim`` is D, the length of a vector.
    """

    def __init__(self, source: str, *, batch: int, device: str, **encoder: Any) -> None:
        folder = locate_text_encoder(source, encoder["revision"], encoder["output"]).folder
        self.weights = weights_digest(folder)
        self.pool = pooling(folder, encoder["output"], encoder["pool"])
        self.name = f"{source_name(source)}@{self.weights[:12]}"
        self._batch, self._output = batch, encoder["output"]
        self._load = lambda: load_text_encoder(source, device=resolve_device(device), **encoder)

    @cached_property
    def encoder(self) -> TextEncoder | WordVectorEncoder:
        return self._load()

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """(n, D) float32."""
        return self.encoder.encode(sentences, self._batch)

    def tokens(self, layer: int | None) -> tuple[TextEncoder, TokenVectors]:
        """The encoder, and the vectors of its tokens from a hidden layer, None for the last.

        Raises:
            UserError: it gives no vectors of tokens.
        """
        if self._output != "hidden" or not isinstance(self.encoder, TextEncoder):
            what = f"BERTScore compares tokens, and the text encoder has output: {self._output}"
            raise UserError(what, where=self.name, remedy="name a text encoder with output: hidden")
        return self.encoder, TokenVectors(self.encoder, layer, self._batch)
