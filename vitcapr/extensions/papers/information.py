"""Information measures of features, in bits: entropies and mutual information.

Peng 2025 (section 2.3) prints a "feature entropy" and a "mutual information between features and matching labels" and
names no estimator. What stands here is named, and has tests in which the truth is known.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import digamma
from sklearn.decomposition import PCA
from sklearn.neighbors import KDTree

from vitcapr.formats.embeddings import Embeddings

Array = npt.NDArray[np.floating]
BINS = 32
COMPONENTS, NEIGHBOURS, POINTS = 4, 3, 2000
PROTOCOL = (
    f"entropy:{BINS} equal bins a feature, mean over features"
    f"|match information:similarity against true or wrong, one of each a query, {BINS} quantile bins, "
    f"Miller-Madow|shared information:KSG, k={NEIGHBOURS}, {COMPONENTS} principal components a "
    f"side, at most {POINTS} pairs"
)
_SEED = 0


def embedding_information(embedded: Embeddings) -> dict[str, float]:
    """Entropies and mutual information of more than :data:`NEIGHBOURS` images.

    Of each caption one wrong image, and of each image one of its captions and a wrong one, are drawn.
    """
    generator = np.random.default_rng(_SEED)
    images, captions, owner = embedded.images, embedded.captions, embedded.caption_image.astype(np.int64)
    strangers = (owner + generator.integers(1, len(images), len(owner))) % len(images)
    own = np.array([generator.choice(np.flatnonzero(owner == image)) for image in np.unique(owner)])
    asked = owner[own]
    foreign = generator.integers(0, len(owner), len(own))
    foreign = np.where(owner[foreign] == asked, (foreign + 1) % len(owner), foreign)
    foreign, kept = foreign[owner[foreign] != asked], owner[foreign] != asked
    true = np.einsum("ne,ne->n", images[asked], captions[own])
    return {
        "image_entropy": histogram_entropy(images),
        "caption_entropy": histogram_entropy(captions),
        "image_match_information": match_information(
            true, np.einsum("ne,ne->n", images[asked[kept]], captions[foreign])
        ),
        "caption_match_information": match_information(
            np.einsum("ne,ne->n", captions, images[owner]), np.einsum("ne,ne->n", captions, images[strangers])
        ),
        "shared_information": shared_information(images[asked], captions[own]),
    }


def histogram_entropy(vectors: Array) -> float:
    """Return the entropy of one feature's values in bits, the mean over the features: at most 5, for 32 bins.

    Each feature's range is cut into equal bins; counts become shares without a correction. It does not see
    the scale of a feature, nor whether features repeat one another.

    Args:
        vectors: (N, E).
    """
    entropies = []
    for feature in np.asarray(vectors, np.float64).T:
        counts, _ = np.histogram(feature, BINS)
        entropies.append(_entropy(counts / counts.sum()))
    return float(np.mean(entropies))


def match_information(true: Array, wrong: Array) -> float:
    """I(similarity; match) in bits for equally many positives and negatives: between 0 and 1, the entropy of the label.

    Similarities are cut at the quantiles of both kinds together; the bias of counting is taken off (Miller and Madow
    1955), and what is then below 0 is 0.

    Args:
        true, wrong: (n,) similarities of true and of wrong pairs; weighed alike whatever their numbers.
    """
    # As many points of each kind, so that edges lie between the kinds where these do not overlap.
    points = np.concatenate([np.quantile(kind, np.linspace(0, 1, 1001)) for kind in (true, wrong)])
    edges = np.quantile(points, np.linspace(0, 1, BINS + 1)[1:-1])
    shares = [
        np.bincount(np.searchsorted(edges, kind, side="right"), minlength=BINS) / len(kind) for kind in (true, wrong)
    ]
    mixed = (shares[0] + shares[1]) / 2
    filled = [int(np.count_nonzero(share)) for share in (*shares, mixed)]
    # The mixture weighs both kinds alike, so that it varies as counts of 4 / (1 / n + 1 / m) points do.
    each = (1 / (4 * len(true)), 1 / (4 * len(wrong)))
    bias = (filled[0] - 1) * each[0] + (filled[1] - 1) * each[1] - (filled[2] - 1) * sum(each) / 2
    plain = _entropy(mixed) - (_entropy(shares[0]) + _entropy(shares[1])) / 2
    return float(np.clip(plain - bias / math.log(2), 0, 1))


def shared_information(images: Array, captions: Array) -> float:
    """I(image features; caption features) of positives in bits, on the first principal components of each.

    The first estimator of Kraskov, Stögbauer and Grassberger 2004 (equation 8). It sees what the components keep, so
    that it is a lower bound of what whole features share, and it grows with their number.

    Args:
        images, captions: (N, E) and (N, D), row by row a true pair. At most the first ``POINTS`` are used.
    """
    parts = []
    for part in (images, captions):
        vectors = np.asarray(part[:POINTS], np.float64)
        parts.append(PCA(min(COMPONENTS, *vectors.shape), whiten=True, svd_solver="full").fit_transform(vectors))
    joint = np.concatenate(parts, axis=1)
    distance, _ = KDTree(joint, metric="chebyshev").query(joint, NEIGHBOURS + 1)
    radius = np.nextafter(distance[:, -1], 0)
    inside = [KDTree(part, metric="chebyshev").query_radius(part, radius, count_only=True) for part in parts]
    nats = digamma(NEIGHBOURS) + digamma(len(joint)) - np.mean(sum(map(digamma, inside)))
    return max(0.0, float(nats) / math.log(2))


def _entropy(shares: Array) -> float:
    present = shares[shares > 0]
    return float(-np.sum(present * np.log2(present)))
