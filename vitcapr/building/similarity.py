"""The encoders that score captions, from the configuration."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vitcapr.config.text_encoder import TextEncoderConfig
from vitcapr.errors import UserError
from vitcapr.features.encoders.checkpoints import weights_digest
from vitcapr.features.encoders.precision import resolve_device
from vitcapr.features.encoders.text_encoders import load_text_encoder, locate_text_encoder
from vitcapr.features.extraction.origin import source_name
from vitcapr.features.store.reader import open_features


class SentenceVectors:
    """Gives the vectors of sentences.

    Attributes:
        name: the encoder and the first digits of its weights' digest, for a protocol.
        weights: SHA-256 of the weights.
        dim: D, the length of a vector.
    """

    def __init__(self, config: TextEncoderConfig, device: str, prompt: str = "") -> None:
        """Args:
        prompt: precedes each sentence.
        """
        folder = locate_text_encoder(config.source, config.revision, config.output).folder
        self.weights = weights_digest(folder)
        self.name = f"{source_name(config.source)}@{self.weights[:12]}"
        self._prompt, self._batch = prompt, config.batch
        self._encoder = load_text_encoder(
            config.source,
            revision=config.revision,
            pool=config.pool,
            dtype=config.dtype,
            device=resolve_device(device),
            max_length=config.max_length,
            output=config.output,
        )
        self.dim = self._encoder.dim

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """(n, D) float32."""
        return self._encoder.encode([self._prompt + sentence for sentence in sentences], self._batch)


def image_vectors(features: Path, images: Sequence[str], encoder: SentenceVectors) -> np.ndarray:
    """The vectors of ``images`` from a store, (n, D) float32.

    Raises:
        UserError: the store is not of the image half of the encoder's model, or an image is not in it.
    """
    with open_features(features) as store:
        vectors = store.get("cls")
        if vectors is None or store.attributes["output"] != "aligned" or vectors.shape[1] != encoder.dim:
            raise UserError(
                "CLIPScore needs the vectors of the space that images and texts share",
                where=features,
                remedy="set output: aligned for its backbone and its text encoder",
            )
        if store.attributes["weights_sha256"] != encoder.weights:
            raise UserError(
                f"the features are of {store.attributes['backbone']}, and {encoder.name} is another model",
                where=features,
                remedy="name the same checkpoint as backbone and as text encoder of metrics.clip_score",
            )
        rows = {image: row for row, image in enumerate(store.image_ids)}
        if missing := [image for image in images if image not in rows]:
            raise UserError(f"image '{missing[0]}' has no features", where=features, remedy="extract them again")
        return vectors.gather(np.array([rows[image] for image in images])).astype(np.float32)
