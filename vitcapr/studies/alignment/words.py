"""The words of captions as vectors, beside the features of a sentence encoder, which lose single words.

Latent semantic analysis (Deerwester et al. 1990, Indexing by Latent Semantic Analysis): a caption is the set of its
words; the weight of word w is ``log((1 + n) / (1 + n_w))``, where n_w of the n training captions have it. Rows X of
length 1 are projected onto the first right singular vectors of the training rows, ``X = U S V'``: a caption x becomes
``V'x``. Words that no training caption has are left out.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from vitcapr.batches.pairing import Pairing
from vitcapr.errors import UserError
from vitcapr.studies.alignment.interface import Float32s
from vitcapr.text.normalise import words_of

DIMENSIONS = 512


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
        directions = _directions(bags[trained], min(DIMENSIONS, *(size - 1 for size in bags[trained].shape)))
    except ValueError as error:  # Of scikit-learn: no word, or no dimension.
        what = "the training captions have fewer than two different words"
        raise UserError(what, where="+words", remedy="leave out +words") from error
    found = np.zeros((rows, directions.shape[1]), np.float32)
    found[pairing.caption_row] = bags @ directions
    return found


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


def _directions(bags: csr_matrix, count: int) -> np.ndarray:
    """The first right singular vectors, (V, count), the largest first; the largest entry of each is positive."""
    found: np.ndarray = TruncatedSVD(count, algorithm="arpack", random_state=0).fit(bags).components_
    return found.T
