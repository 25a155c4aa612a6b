"""The space of a retrieval model: neighbours of images, references and captions of systems, and a map of the images."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vitcapr.extensions.explorer.results import Space, System
from vitcapr.metrics.ranks import rank_matches

SHOWN = 6
"""Neighbours of each."""
_BLOCK = 512
Cosines = NDArray[np.float32]
Json = dict[str, Any]
Embed = Callable[[int, str, Sequence[str]], NDArray[np.float32] | None]
"""From the number of an experiment, the name of its retrieval model and n texts to (n, E) unit vectors; None if the
model cannot embed them."""
_LEAST = 5
"""Images of the smallest map."""
_CLUSTER, _MOST_LABELS, _LABEL_WORDS = 25, 12, 2
"""Images for each label of a map, labels, and words of a label."""


def nearest(
    queries: Cosines, pool: Cosines, count: int = SHOWN, without_itself: bool = False
) -> tuple[NDArray[np.intp], Cosines]:
    """Return places (Q, K) and cosines of the ``count`` nearest of ``pool`` (P, E) to each query, nearest first.

    ``queries`` (Q, E) are read in blocks. K is smaller than ``count`` if P is.

    Args:
        without_itself: queries and pool are the same, and no query is its own neighbour.
    """
    count = min(count, len(pool) - without_itself)
    places, cosines = [np.empty((0, count), np.intp)], [np.empty((0, count), np.float32)]
    for first in range(0, len(queries), _BLOCK):
        block = queries[first : first + _BLOCK] @ pool.T
        if without_itself:
            own = np.arange(len(block))
            block[own, first + own] = -np.inf
        best = np.argpartition(-block, max(count - 1, 0), axis=1)[:, :count]
        cosine = np.take_along_axis(block, best, axis=1)
        order = np.argsort(-cosine, axis=1, kind="stable")
        places.append(np.take_along_axis(best, order, axis=1))
        cosines.append(np.take_along_axis(cosine, order, axis=1))
    return np.concatenate(places), np.concatenate(cosines)


def describe_texts(
    texts: Cosines, own: NDArray[Any], ranks: NDArray[Any], images: Cosines, numbers: Sequence[int]
) -> list[Json]:
    """Describe M texts: the nearest images, and the own image with its cosine and rank.

    Args:
        texts: (M, E), images: (N, E) unit vectors.
        own: (M,) the place of each text's image; ranks: (M,) of this image.
        numbers: of the images in the gallery.
    """
    near, cosines = nearest(texts, images), np.einsum("me,me->m", texts, images[own])
    return [
        {"images": pairs(place, cosine, numbers), "own": [numbers[image], short(own_cosine)], "rank": int(rank)}
        for place, cosine, image, own_cosine, rank in zip(*near, own.tolist(), cosines, ranks, strict=True)
    ]


def describe_images(space: Space, numbers: Sequence[int], references: Sequence[int]) -> list[Json]:
    """Describe images: the nearest captions and images, and the nearest own caption with its rank.

    Args:
        numbers: of the images in the gallery; references: of the captions.
    """
    embedded = space.embedded
    captions = zip(*nearest(embedded.images, embedded.captions), strict=True)
    others = zip(*nearest(embedded.images, embedded.images, without_itself=True), strict=True)
    cosines = np.einsum("me,me->m", embedded.captions, embedded.images[embedded.caption_image])
    order = np.argsort(cosines, kind="stable")
    # Of the captions of an image, the last stays: the nearest.
    best = dict(zip(embedded.caption_image[order].tolist(), order.tolist(), strict=True))
    return [
        {
            "captions": pairs(*near_captions, references),
            "images": pairs(*near_images, numbers),
            "own": [references[best[image]], short(cosines[best[image]])] if image in best else None,
            "rank": int(rank),
        }
        for image, (near_captions, near_images, rank) in enumerate(zip(captions, others, space.ranks.i2t, strict=True))
    ]


def pairs(places: NDArray[np.intp], cosines: NDArray[np.float32], numbers: Sequence[int]) -> list[list[float]]:
    return [[numbers[place], short(cosine)] for place, cosine in zip(places.tolist(), cosines.tolist(), strict=True)]


def short(cosine: float) -> float:
    return round(float(cosine), 3)


class Written(NamedTuple):
    """Captions of one system (N, E) for the N images of a space, and the rank (N,) of each own image.

    Images with the same cosine rank before it.
    """

    captions: Cosines
    ranks: NDArray[np.integer]


def embed_captions(
    space: Space,
    ids: Sequence[str],
    systems: Mapping[str, System],
    embed: Callable[[Sequence[str]], NDArray[np.float32] | None],
) -> dict[str, Written]:
    """Return the captions of each system in a space, without the systems that lack a caption of some of its images.

    Args:
        ids: of the images of the space.
        embed: (n, E) of n texts, or None; called once, with different texts.
    """
    whole = {name: each.captions for name, each in systems.items() if all(image in each.captions for image in ids)}
    texts = {name: [captions[image].caption for image in ids] for name, captions in whole.items()}
    place = {text: number for number, text in enumerate(dict.fromkeys(chain(*texts.values())))}
    vectors = embed(list(place)) if place else None
    if vectors is None:
        return {}
    images, owner = space.embedded.images, np.arange(len(space.embedded.images))
    captions = {name: vectors[[place[text] for text in each]] for name, each in texts.items()}
    return {name: Written(each, rank_matches(images, each, owner).t2i) for name, each in captions.items()}


def place_on_map(vectors: NDArray[np.float32]) -> NDArray[np.float64] | None:
    """t-SNE of N unit vectors: (N, 2) between 0 and 1, or None if there are too few or they are all the same."""
    from vitcapr.report.figures.embedding_spaces import tsne

    if len(vectors) < _LEAST or np.ptp(vectors, axis=0).max() == 0:
        return None
    places, _ = tsne(vectors)
    low, high = places.min(axis=0), places.max(axis=0)
    scaled: NDArray[np.float64] = 0.5 + (places - (low + high) / 2) / max(float((high - low).max()), 1e-12)
    return scaled


def label_map(places: NDArray[np.float64], texts: Sequence[str]) -> list[tuple[float, float, str]]:
    """Return labels ``(x, y, words)``: for each cluster of a map, words that its images have more often than others.

    Args:
        places: (N, 2) of the images.
        texts: N, the captions of each image.
    """
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import CountVectorizer
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    count = min(len(places) // _CLUSTER, _MOST_LABELS)
    if count < 2:
        return []
    with threadpool_limits(1):
        clusters = KMeans(count, n_init=4, random_state=0).fit(places)
    counter = CountVectorizer(binary=True, stop_words="english", token_pattern=r"[^\W\d_]{2,}")
    try:
        has_word = counter.fit_transform(texts)
    except ValueError:  # No word is left.
        return []
    words, labels = counter.get_feature_names_out(), []
    for number, (x, y) in enumerate(clusters.cluster_centers_.round(4).tolist()):
        inside = clusters.labels_ == number
        more = np.asarray(has_word[inside].mean(axis=0) - has_word[~inside].mean(axis=0)).ravel()
        best = np.argsort(-more, kind="stable")[:_LABEL_WORDS]
        labels.append((x, y, " ".join(words[best])))
    return labels
