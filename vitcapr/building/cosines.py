"""The cosine of each candidate caption of a split and its image, in the space of a retriever."""

from collections.abc import Sequence
from pathlib import Path

from vitcapr.decoding.rerank import Float64s, NBest, cosines_of
from vitcapr.encoders.precision import resolve_device
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import WEIGHTS
from vitcapr.progress import Reporter
from vitcapr.retrieval.augmented_views import open_augmented_views
from vitcapr.retrieval.embedder import open_retriever


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
    with reporter.track("embed", len(rows) + len(different), "images and captions") as tracker:
        images = embed_images.embed(rows, advance=tracker.advance)
        texts = opened.text_embedder.embed(different, advance=tracker.advance)
    of_captions = texts[[place[caption] for caption in captions]]
    return cosines_of(images, of_captions, [len(n_best.candidates) for n_best in found])
