"""The vectors of sentences by which captions are scored."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.encoders.checkpoints import source_name, weights_digest
from vitcapr.encoders.devices import resolve_device
from vitcapr.encoders.text_encoders import TextEncoder, TextRecipe
from vitcapr.encoders.text_towers import WordVectorEncoder
from vitcapr.errors import UserError


class SentenceVectors:
    """Gives the vectors of sentences.

    Args:
        encoder: the other attributes of a :class:`TextRecipe`.

    Attributes:
        name: the encoder and the first digits of its weights' digest, for a protocol.
        weights: SHA-256 of the weights.
        encoder: loaded when it is first used; its ``dim`` is D, the length of a vector.
    """

    def __init__(self, source: str, *, device: str, **encoder: Any) -> None:
        self._recipe = TextRecipe(source, resolve_device(device), **encoder)
        self.weights = weights_digest(self._recipe.checkpoint.folder)
        self.name = f"{source_name(source)}@{self.weights[:12]}"

    @cached_property
    def encoder(self) -> TextEncoder | WordVectorEncoder:
        return self._recipe.load()

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """(n, D) float32."""
        return self.encoder.encode(sentences)

    def cut(self, sentences: Sequence[str]) -> int:
        """Return how many sentences fill all the tokens that the encoder reads, or are cut to them."""
        longest = self.encoder.longest
        return 0 if longest is None else sum(len(tokens) >= longest for tokens in self.encoder.tokenize(sentences))

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
