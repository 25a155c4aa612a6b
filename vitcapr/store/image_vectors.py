"""The vectors of images, from a store, with which captions are compared."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vitcapr.encoders.sentence_vectors import SentenceVectors
from vitcapr.errors import UserError
from vitcapr.store.reader import open_features


def image_vectors(features: Path, images: Sequence[str], encoder: SentenceVectors) -> np.ndarray:
    """The vectors of ``images`` from a store, (n, D) float32.

    Raises:
        UserError: the store is not of the image half of the encoder's model, or an image is not in it.
    """
    with open_features(features) as store:
        vectors = store.get("cls")
        if vectors is None or store.attributes.get("output") != "aligned" or vectors.shape[1] != encoder.encoder.dim:
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
