"""The encoders that score captions, from the configuration."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vitcapr.config.features import TextEncoderConfig
from vitcapr.config.metrics import BertScoreConfig
from vitcapr.encoders.checkpoints import source_name, weights_digest
from vitcapr.encoders.precision import resolve_device
from vitcapr.encoders.text_encoders import (
    TextEncoder,
    TokenVectors,
    WordVectorEncoder,
    load_text_encoder,
    locate_text_encoder,
)
from vitcapr.errors import UserError
from vitcapr.metrics.bootstrap import Measure
from vitcapr.metrics.similarity import bert_score
from vitcapr.store.reader import open_features


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
        self.name, self.weights = _named(config)
        self._prompt, self._batch = prompt, config.batch
        self._encoder = _loaded(config, device)
        self.dim = self._encoder.dim

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        """(n, D) float32."""
        return self._encoder.encode([self._prompt + sentence for sentence in sentences], self._batch)


def bert_scores(
    config: TextEncoderConfig,
    options: BertScoreConfig,
    device: str,
    captions: Sequence[str],
    references: Sequence[str],
    image_of: np.ndarray,
) -> tuple[dict[str, Measure], str]:
    """BERTScore of captions, and what its protocol says.

    Args:
        captions: (N,).
        references: (M,).
        image_of: (M,) which of the N captions each reference belongs to; each has one or more.

    Raises:
        UserError: the text encoder is none with output: hidden, or has no such layer.
    """
    encoder = _loaded(config, device) if config.output == "hidden" else None
    if not isinstance(encoder, TextEncoder):
        what = f"BERTScore compares tokens, and the text encoder has output: {config.output}"
        raise UserError(what, where=config.source, remedy="name a text encoder with output: hidden")
    vectors = TokenVectors(encoder, options.layer, config.batch)
    tokens, others = encoder.tokenize(captions), encoder.tokenize(references)
    measures = bert_score(tokens, others, image_of, vectors, vectors.special, options.idf)
    layer = "last" if options.layer is None else options.layer
    weights = "references" if options.idf else "none"
    stated = f"layer={layer},idf={weights},maximum over references,baseline rescaling=none"
    return measures, f"bert_score:{_named(config)[0]},{stated}"


def _named(config: TextEncoderConfig) -> tuple[str, str]:
    """The name of an encoder for a protocol, and SHA-256 of its weights."""
    weights = weights_digest(locate_text_encoder(config.source, config.revision, config.output).folder)
    return f"{source_name(config.source)}@{weights[:12]}", weights


def _loaded(config: TextEncoderConfig, device: str) -> TextEncoder | WordVectorEncoder:
    return load_text_encoder(
        config.source,
        revision=config.revision,
        pool=config.pool,
        dtype=config.dtype,
        device=resolve_device(device),
        max_length=config.max_length,
        output=config.output,
    )


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
