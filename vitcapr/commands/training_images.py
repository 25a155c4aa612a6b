"""How near a photograph is to the training images of a captioner, and pictures of its data set to try."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vitcapr.api.captioner import TrainedCaptioner
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest, read_manifest

if TYPE_CHECKING:
    from PIL.Image import Image

MANIFEST = "data/manifest.json"
SAMPLES = 6
_COMPARED = 2000
"""Training images that a photograph is compared with, at most."""
_BLOCK = 64
_UNUSUAL = 0.01
"""The share of the training images whose nearest other one is as far as an unusual photograph's."""


class Likeness(NamedTuple):
    """The cosine of a photograph and the nearest training image, and the least that is usual."""

    cosine: float
    usual: float


class Nearness:
    """Cosines with vectors (N, D), and how near these are to one another."""

    def __init__(self, vectors: NDArray[np.floating]) -> None:
        self._vectors = _unit(vectors)
        cosines = self._vectors @ self._vectors.T
        np.fill_diagonal(cosines, -1)
        self.usual = float(np.quantile(cosines.max(axis=1), _UNUSUAL))

    def likeness(self, vector: NDArray[np.floating]) -> Likeness:
        """Of one vector (D,)."""
        return Likeness(float((self._vectors @ _unit(vector[None])[0]).max()), self.usual)


class TrainingImages:
    """Of a captioner whose experiment has its data set; without it, there are no samples and no likeness."""

    def __init__(self, captioner: TrainedCaptioner) -> None:
        self._captioner = captioner

    def likeness(self, picture: "Image") -> Likeness | None:
        if self._nearness is None:
            return None
        features = self._captioner._encoder.encode([picture])
        return self._nearness.likeness(_summary({name: np.asarray(each.cpu()) for name, each in features.items()})[0])

    def sample(self, number: int) -> bytes:
        """The file of a sample."""
        assert self._data is not None
        with ImageSource(self._data.image_root) as source:
            return source.read(self.samples[number])

    @cached_property
    def samples(self) -> Sequence[str]:
        """The paths of some images of the test split, or of all."""
        if self._data is None:
            return []
        images = self._data.images
        paths = images["path"][images["split"] == "test"].tolist() or images["path"].tolist()
        return paths[:: max(1, len(paths) // SAMPLES)][:SAMPLES]

    @cached_property
    def _data(self) -> Manifest | None:
        try:
            return read_manifest(self._captioner.files.experiment / MANIFEST)
        except UserError:
            return None

    @cached_property
    def _nearness(self) -> Nearness | None:
        from vitcapr.store.reader import open_features

        if self._data is None:
            return None
        try:
            store = open_features(self._captioner.features).at_layer(self._captioner.files.model.layer)
        except UserError:
            return None
        with store:
            training = set(self._data.images["image_id"][self._data.images["split"] == "train"])
            rows = [row for row, image in enumerate(store.image_ids) if image in training]
            rows = rows[:: -(-len(rows) // _COMPARED) or 1]
            if len(rows) < 2:
                return None
            blocks = (rows[first : first + _BLOCK] for first in range(0, len(rows), _BLOCK))
            return Nearness(
                np.concatenate([_summary({name: array[block] for name, array in store.items()}) for block in blocks])
            )


def _summary(features: Mapping[str, NDArray[np.floating]]) -> NDArray[np.floating]:
    """(B, D) of B images: the mean of the patches, whose cosines tell photographs from drawings better than CLS."""
    patches = features.get("patches")
    return features["cls"] if patches is None else np.asarray(patches, np.float32).mean(axis=1)


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)
