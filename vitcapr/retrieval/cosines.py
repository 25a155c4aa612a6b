"""The cosine of each candidate caption of a split and its image, in the space of a retriever."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vitcapr.encoders.precision import resolve_device
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import WEIGHTS
from vitcapr.progress import Reporter
from vitcapr.retrieval.augmented_views import open_augmented_views
from vitcapr.retrieval.embedder import open_retriever

Float64s = NDArray[np.float64]


def digest_of(retriever: Path) -> str:
    """The identity of a trained retriever: the sha256 of its weights.

    Raises:
        UserError: there is no trained retriever.
    """
    weights = retriever / WEIGHTS
    if not weights.is_file():
        raise UserError("no trained retriever there", where=retriever, remedy="train the retriever")
    return sha256_file(weights)


def split_cosines(
    image_ids: Sequence[str],
    candidates: Sequence[Sequence[str]],
    data: Manifest,
    *,
    features: Path,
    augmented_views: Sequence[Path] | None,
    vocabulary: Path,
    retriever: Path,
    text_encoder: str | None,
    device: str,
    reporter: Reporter,
) -> list[Float64s]:
    """The cosine of each image and each of its candidate captions.

    Raises:
        UserError: the features or views are those of another data set, or the retriever cannot read them.
    """
    opened = open_retriever(retriever, vocabulary=vocabulary, device=resolve_device(device), text_encoder=text_encoder)
    rows = data.rows_of(image_ids)
    # Images share captions: each is embedded once.
    different = sorted({caption for captions in candidates for caption in captions})
    place = {caption: number for number, caption in enumerate(different)}
    stores = open_augmented_views(data, opened.augmented_views, features, augmented_views, opened.layer)
    embed_images = opened.image_embedder(*stores)
    with reporter.track("embed", len(rows) + len(different), "images and captions") as tracker:
        images = embed_images.embed(rows, advance=tracker.advance)
        texts = opened.text_embedder.embed(different, advance=tracker.advance)
    of_captions = texts[[place[caption] for captions in candidates for caption in captions]]
    return cosines_of(images, of_captions, [len(captions) for captions in candidates])


def cosines_of(images: NDArray[np.float32], captions: NDArray[np.float32], counts: Sequence[int]) -> list[Float64s]:
    """The cosine of each image and each of its candidates.

    Args:
        images: (B, E), L2-normalised.
        captions: (sum of counts, E), L2-normalised, grouped by image.
        counts: candidates of each of B images.
    """
    of_image = np.repeat(np.arange(len(counts)), counts)
    cosines = np.einsum("me,me->m", images[of_image].astype(np.float64), captions.astype(np.float64))
    return np.split(cosines, np.cumsum(counts)[:-1])
