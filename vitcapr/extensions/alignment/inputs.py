"""The features of two stores, and the words of captions beside them, as the arrays that alignments are fitted to.

A sentence encoder loses single words. Latent semantic analysis (Deerwester et al. 1990, Indexing by Latent Semantic
Analysis) keeps them: a caption is the set of its words; the weight of word w is ``log((1 + n) / (1 + n_w))``, where n_w
of the n training captions have it. Rows X of length 1 are projected onto the first right singular vectors of the
training rows, ``X = U S V'``: a caption x becomes ``V'x``. Words that no training caption has are left out.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from vitcapr.batches.texts import draw_pairs
from vitcapr.errors import UserError
from vitcapr.extensions.alignment.closed_forms import Float32s, Pairs
from vitcapr.extensions.alignment.pairing import Pairing
from vitcapr.store.reader import FeatureStore
from vitcapr.text.normalise import words_of

VIEWS, WORDS = "views", "words"
"""The parts of inputs that are no array of the image store."""
_BLOCK = 256
"""Images whose patches are read at a time."""
WORD_DIMENSIONS = 512


class Features(NamedTuple):
    """Rows of two stores to which a family is fitted: images (N, Di) and texts (M, Dt)."""

    images: Float32s
    texts: Float32s


def image_inputs(views: Sequence[FeatureStore], parts: Sequence[str]) -> Float32s:
    """Return one vector an image: CLS, the mean of the patches, or a concatenation of several.

    Args:
        views: stores of the same images, the plain one first.
        parts: arrays of the stores, ``cls``, ``patches`` or those of a layer, and ``views`` for the mean over all views
            instead of the first view; ``words`` is not read here.

    Returns:
        (N, sum of the widths) float32.

    Raises:
        UserError: a store lacks an array, or the views are of other images.
    """
    arrays = [part for part in parts if part not in (VIEWS, WORDS)]
    seen = views if VIEWS in parts else views[:1]
    if VIEWS in parts and len(views) < 2:
        raise UserError("there is one view alone", where="+".join(parts), remedy="give the others with --view")
    for view in seen:
        if view.ids != views[0].ids:
            remedy = "give stores of the same data set"
            raise UserError("the view is of other images", where=view.manifest_path, remedy=remedy)
    means = [np.mean([_one_vector(view, name) for view in seen], axis=0) for name in arrays]
    return np.concatenate(means, axis=1).astype(np.float32, copy=False)


def pairs_of(images: Float32s, texts: Float32s, pairing: Pairing, split: str, drawn: int | None, seed: int) -> Pairs:
    """Return the pairs of a split, or so many captions of it with their images.

    Args:
        drawn: number of captions to sample; with the same seed, a larger sample contains the smaller one. None: all.

    Raises:
        UserError: the split has fewer captions.
    """
    rows = pairing.splits[split]
    inside = np.isin(pairing.image_row, rows)
    kept = inside & draw_pairs(pairing.image_row, rows, drawn, seed)
    owners, caption_image = np.unique(pairing.image_row[kept], return_inverse=True)
    return Pairs(images[owners], texts[pairing.caption_row[kept]], caption_image.astype(np.int64))


def word_features(pairing: Pairing, rows: int) -> Float32s:
    """(rows, K): for each row of the text store, its caption by its words; zeros for a row that is in no pair.

    K is 512, or less with few captions or words. The training captions are those of the whole training split, however
    few pairs are drawn: no image is needed.

    Raises:
        UserError: the table of pairs has no texts, or those of the training captions have fewer than two words.
    """
    if pairing.captions is None:
        remedy = "give a table of pairs with the column text"
        raise UserError("the words of the captions are not known", where="+words", remedy=remedy)
    trained = np.isin(pairing.image_row, pairing.splits["train"])
    try:
        bags = bags_of_words(pairing.captions, trained)
        dimensions = min(WORD_DIMENSIONS, *(size - 1 for size in bags[trained].shape))
        directions = TruncatedSVD(dimensions, algorithm="arpack", random_state=0).fit(bags[trained]).components_.T
    except ValueError as error:  # Of scikit-learn: no word, or no dimension.
        what = "the training captions have fewer than two different words"
        raise UserError(what, where="+words", remedy="leave out +words") from error
    features = np.zeros((rows, directions.shape[1]), np.float32)
    features[pairing.caption_row] = bags @ directions
    return features


def bags_of_words(captions: Sequence[str], trained: np.ndarray) -> csr_matrix:
    """(M, V) float64, rows of length 1 or 0; columns are the words of the training captions, sorted.

    Args:
        trained: (M,) bool, which captions are for training.
    """
    counter = CountVectorizer(analyzer=words_of, binary=True, dtype=np.float64)
    counter.fit(caption for caption, used in zip(captions, trained, strict=True) if used)
    bags = counter.transform(captions)
    captions_with = np.asarray(bags[trained].sum(axis=0)).ravel()
    weights = np.log((1 + trained.sum()) / (1 + captions_with))
    bags.data *= weights[bags.indices]
    return normalize(bags)


def _one_vector(store: FeatureStore, name: str) -> Float32s:
    array = store[name]
    if array.ndim == 2:
        return np.asarray(array, np.float32)
    blocks = (array[first : first + _BLOCK] for first in range(0, len(array), _BLOCK))
    return np.concatenate([block.astype(np.float32).mean(axis=1) for block in blocks])
