"""The cosine of each candidate caption of a split and its image, in the space of a retriever."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vitcapr.decoding.rerank import Float64s, NBest, cosines_of
from vitcapr.encoders.precision import resolve_device
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import WEIGHTS
from vitcapr.progress import Reporter
from vitcapr.retrieval.augmented_views import open_augmented_views
from vitcapr.retrieval.embedder import open_retriever

_BLOCK = 1024
"""Captions or images embedded between two lines of progress."""


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
    found: Sequence[NBest],
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
    """The cosine of each image of ``found`` and each of its candidates.

    Raises:
        UserError: the features or views are those of another data set, or the retriever cannot read them.
    """
    opened = open_retriever(retriever, vocabulary=vocabulary, device=resolve_device(device), text_encoder=text_encoder)
    rows = data.rows_of([n_best.image_id for n_best in found])
    captions = [caption for n_best in found for caption in n_best.captions]
    # Images share captions: each is embedded once.
    different = sorted(set(captions))
    place = {caption: number for number, caption in enumerate(different)}
    stores = open_augmented_views(data, opened.augmented_views, features, augmented_views, opened.layer)
    embed_images = opened.image_embedder(*stores)
    total = len(rows) + len(different)
    embedded: list[list[NDArray[np.float32]]] = [[], []]
    with reporter.track("embed", total, "images and captions") as tracker:
        for start in range(0, len(rows), _BLOCK):
            embedded[0].append(embed_images.embed(rows[start : start + _BLOCK]))
            tracker.advance(len(embedded[0][-1]))
        for start in range(0, len(different), _BLOCK):
            embedded[1].append(opened.text_embedder.embed(different[start : start + _BLOCK]))
            tracker.advance(len(embedded[1][-1]))
    images, texts = (np.concatenate(parts) for parts in embedded)
    of_captions = texts[[place[caption] for caption in captions]]
    return cosines_of(images, of_captions, [len(n_best.candidates) for n_best in found])
