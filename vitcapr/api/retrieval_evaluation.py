"""Scores of embeddings for retrieval, of any system."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.api.evaluation import Evaluation, check_resampling, score_frame
from vitcapr.api.pairs_check import UNCHECKED, check_embeddings
from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings, read_embeddings
from vitcapr.formats.records import reading
from vitcapr.metrics.labels import COLUMNS
from vitcapr.metrics.ranks import CaptionOwners, rank_matches
from vitcapr.metrics.retrieval_measures import measures
from vitcapr.metrics.retrieval_scoring import score_embeddings
from vitcapr.metrics.system_comparison import compared_measures

Array = Any
"""An array of numpy, torch or another library, or the path of a ``.npy`` file."""


def evaluate_retrieval(
    images: Array,
    texts: Array | None = None,
    *,
    captions_per_image: int | None = None,
    image_of_text: Array | None = None,
    against: tuple[Array, Array] | None = None,
    samples: int = 1000,
    seed: int = 0,
    content_check: bool = True,
) -> Evaluation:
    """Recall@K, ranks and mAP@R of embeddings, in both directions, by cosine, with 95 % intervals over the images.

    Examples:
        >>> vitcapr.evaluate_retrieval("images.npy", "texts.npy", captions_per_image=5).scores  # doctest: +SKIP

    Args:
        images: (N, E), or the path of such a ``.npy`` file; or, without texts, the ``.npz`` that ``embed`` wrote.
        texts: (M, E) or a path.
        captions_per_image: number of texts of each image, in the order of the images.
        image_of_text: (M,) the row in ``images`` of each text, or a path. Neither: text i belongs to image i.
        against: images and texts of another system, in the same rows, for paired differences over the images.
        samples, seed: as for :func:`evaluate`.
        content_check: compare the texts with their own and with other images. False: the pairs are right, whatever
            their embeddings say; the protocol says so.

    Raises:
        UserError: the shapes do not fit, a row is zero or not finite, an image has no text, or the
            texts belong to other images by their content.
    """
    check_resampling(samples, seed)
    other = None
    if against is not None:
        other = _embedded(*against, captions_per_image, image_of_text)
    if texts is None and isinstance(images, str | Path):
        if captions_per_image is not None or image_of_text is not None:
            what = "the file of embed says which image each text has"
            raise UserError(what, where=images, remedy="give nothing else")
        embedded = read_embeddings(Path(images))
    else:
        embedded = _embedded(images, texts, captions_per_image, image_of_text)
    content = UNCHECKED
    if content_check:
        systems = [embedded] if other is None else [embedded, other]
        content = "\n".join(check_embeddings(one.images, one.captions, one.caption_image) for one in systems)
    scored = score_embeddings(embedded, split="all", languages=["any"], samples=samples, seed=seed)
    ranks = pd.DataFrame({"image": np.arange(len(embedded.images)), "i2t_rank": scored.ranks.ranks.i2t})
    differences = None if other is None else score_frame(_differences(other, embedded, samples, seed))
    protocol = scored.protocol if content_check else f"{scored.protocol}|{UNCHECKED}"
    return Evaluation(score_frame(scored.scores), ranks, protocol, differences, content=content)


def _embedded(images: Array, texts: Array, captions_per_image: int | None, image_of_text: Array | None) -> Embeddings:
    pictures, sentences = _vectors(images, "the image embeddings"), _vectors(texts, "the text embeddings")
    if pictures.shape[1] != sentences.shape[1]:
        what = f"the images have {pictures.shape[1]} dimensions and the texts {sentences.shape[1]}"
        raise UserError(what, remedy="give embeddings of one space")
    owner = _owners(len(pictures), len(sentences), captions_per_image, image_of_text)
    order, rows = np.argsort(owner, kind="stable").astype(np.int32), np.arange(len(pictures), dtype=np.int32)
    return Embeddings(pictures, sentences[order], rows, order, owner[order].astype(np.int32))


def _differences(before: Embeddings, after: Embeddings, samples: int, seed: int) -> dict[str, dict[str, Any]]:
    """Return each score of two systems and its paired difference, as the comparison of two sets of captions does."""
    if len(before.images) != len(after.images) or not np.array_equal(before.caption_image, after.caption_image):
        counts = [f"{len(one.images)} images and {len(one.captions)} texts" for one in (after, before)]
        raise UserError(f"the systems have {' and '.join(counts)}", remedy="give embeddings of the same rows")
    owners, sides = CaptionOwners.of(after.caption_image, len(after.images)), []
    for one in (before, after):
        sides.append(measures(rank_matches(one.images, one.captions, owners.caption_image, lambda _: None), owners))
    old, new = sides
    return {name: compared_measures(old[name], new[name], samples, seed) for name in old if name in COLUMNS}


def _vectors(values: Array, what: str) -> np.ndarray:
    """(n, E) float32, each row of length 1."""
    array = _array(values, what)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiu":
        where = values if isinstance(values, str | Path) else None
        raise UserError(
            f"{what} are {array.dtype} of shape {array.shape}", where=where, remedy="give numbers, a row each"
        )
    rows = np.asarray(array, np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    wrong = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if len(wrong):
        reason = "zero" if lengths[wrong[0]] == 0 else "not finite"
        raise UserError(f"{len(wrong)} of {what} are zero or not finite", where=f"row {wrong[0]}, which is {reason}")
    unit: np.ndarray = (rows / lengths[:, None]).astype(np.float32)
    return unit


def _owners(images: int, texts: int, captions_per_image: int | None, image_of_text: Array | None) -> np.ndarray:
    """(texts,) the image of each text."""
    if captions_per_image is not None and image_of_text is not None:
        remedy = "give --captions-per-image or --image-of-text"
        raise UserError("the images of the texts are given twice", remedy=remedy)
    if image_of_text is not None:
        owner = _array(image_of_text, "the images of the texts")
        if owner.shape != (texts,) or owner.dtype.kind not in "iu":
            what = f"the images of the texts are {owner.dtype} of shape {owner.shape}"
            raise UserError(what, remedy=f"give {texts} whole numbers, one for each text")
        outside = owner[(owner < 0) | (owner >= images)]
        if len(outside):
            raise UserError(f"a text belongs to image {outside[0]}", remedy=f"the images are 0 to {images - 1}")
        return owner.astype(np.int64)
    each = 1 if captions_per_image is None else captions_per_image
    if each < 1 or images * each != texts:
        raise UserError(
            f"{texts} texts are not {each} for each of {images} images",
            remedy=f"give --captions-per-image {texts // images}" if texts % images == 0 else "give --image-of-text",
        )
    return np.repeat(np.arange(images), each)


def _array(values: Array, what: str) -> np.ndarray:
    if isinstance(values, np.ma.MaskedArray):
        raise UserError(f"{what} are a masked array", remedy="leave out the rows, or fill them")
    if not isinstance(values, str | Path):
        with reading(what, "numbers", "give an array"):
            if hasattr(values, "detach"):  # numpy knows neither the gradients of torch nor its bfloat16.
                values = values.detach().cpu()
                values = values.float() if values.is_floating_point() else values
            return np.asarray(values)
    with reading(Path(values), "a .npy file of numbers", f"write {what} with numpy.save"):
        array = np.load(values, mmap_mode="r", allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("an .npz file holds several arrays")
        return array
