"""The space of a retrieval model: neighbours of images, references and captions of systems, and a map of the images."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vitcapr.formats.embeddings import Embeddings
from vitcapr.metrics.ranks import rank_matches
from vitcapr.report.explorer.gallery import Gallery
from vitcapr.report.explorer.results import Space, System

SHOWN = 6
"""Neighbours of each."""
_BLOCK = 512
Near = NDArray[np.intp]
Cosines = NDArray[np.float32]
Embed = Callable[[int, str, Sequence[str]], NDArray[np.float32] | None]
"""From the number of an experiment, the name of its retrieval model and n texts to (n, E) unit vectors; None if the
model cannot embed them."""
_LEAST = 5
"""Images of the smallest map."""


class Nearest(NamedTuple):
    """The places (Q, K) and cosines of the K nearest of a pool to each of Q queries, the nearest first."""

    place: Near
    cosine: Cosines


def nearest(queries: Cosines, pool: Cosines, count: int = SHOWN, without_itself: bool = False) -> Nearest:
    """The ``count`` nearest of ``pool`` (P, E) to each of ``queries`` (Q, E), in blocks of queries; fewer if P is less.

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
    return Nearest(np.concatenate(places), np.concatenate(cosines))


def nearest_own(embedded: Embeddings) -> tuple[Near, Cosines]:
    """(N,) the place of the nearest of each image's own captions, -1 where it has none; (M,) the cosine of each caption
    with its own image."""
    owner = embedded.caption_image
    cosines = np.einsum("me,me->m", embedded.captions, embedded.images[owner])
    place = np.full(len(embedded.images), -1, np.intp)
    order = np.argsort(cosines, kind="stable")
    place[owner[order]] = order  # The last one stays: the nearest.
    return place, cosines


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Neighbours in one space, by the numbers of the gallery."""

    images: Mapping[int, dict[str, Any]]
    references: Mapping[int, dict[str, Any]]
    references_of: Mapping[int, list[int]]

    @classmethod
    def of(cls, space: Space, gallery: Gallery, number: int) -> "Neighbours":
        embedded, ranks = space.embedded, space.ranks
        image_of = gallery.image_of_row[number][embedded.image_row].tolist()
        reference_of = gallery.reference_of_row[number][embedded.caption_row].tolist()
        captions = nearest(embedded.images, embedded.captions)
        others = nearest(embedded.images, embedded.images, without_itself=True)
        described = nearest(embedded.captions, embedded.images)
        own, own_cosine = nearest_own(embedded)
        images = {}
        for place, image in enumerate(image_of):
            mine = int(own[place])
            images[image] = {
                "captions": pairs(captions.place[place], captions.cosine[place], reference_of),
                "images": pairs(others.place[place], others.cosine[place], image_of),
                "own": None if mine < 0 else [reference_of[mine], short(own_cosine[mine])],
                "rank": int(ranks.i2t[place]),
            }
        references: dict[int, dict[str, Any]] = {}
        references_of: dict[int, list[int]] = {}
        for place, reference in enumerate(reference_of):
            image = image_of[embedded.caption_image[place]]
            references[reference] = {
                "images": pairs(described.place[place], described.cosine[place], image_of),
                "own": [image, short(own_cosine[place])],
                "rank": int(ranks.t2i[place]),
            }
            references_of.setdefault(image, []).append(reference)
        return cls(images, references, references_of)

    def part(self, images: range) -> dict[str, Any]:
        """Lists by image, and references by their numbers."""
        references = [reference for image in images for reference in self.references_of.get(image, ())]
        return {
            "images": [self.images.get(image) for image in images],
            "references": {str(reference): self.references[reference] for reference in references},
        }


def pairs(places: NDArray[np.intp], cosines: NDArray[np.float32], numbers: Sequence[int]) -> list[list[float]]:
    return [[numbers[place], short(cosine)] for place, cosine in zip(places.tolist(), cosines.tolist(), strict=True)]


def short(cosine: float) -> float:
    return round(float(cosine), 3)


@dataclass(frozen=True, eq=False)
class Written:
    """One system's captions of the N images of a space: the images nearest to each, and the cosine (N,) and rank (N,)
    of its own image. Images with the same cosine come before it."""

    nearest: Nearest
    cosine: NDArray[np.float32]
    ranks: NDArray[np.integer]


def written_in(
    space: Space,
    ids: Sequence[str],
    systems: Sequence[System],
    embed: Callable[[Sequence[str]], NDArray[np.float32] | None],
) -> list[Written | None]:
    """The captions of each system in a space; None for a system without a caption of some of its images.

    Args:
        ids: of the images of the space.
        embed: (n, E) of n texts, or None; called once, with different texts.
    """
    whole = [all(image in system.captions for image in ids) for system in systems]
    texts = [
        [system.captions[image].caption for image in ids] if has else []
        for system, has in zip(systems, whole, strict=True)
    ]
    place = {text: number for number, text in enumerate(dict.fromkeys(text for each in texts for text in each))}
    vectors = embed(list(place)) if place else None
    if vectors is None:
        return [None] * len(systems)
    images = space.embedded.images

    def locate(captions: Cosines) -> Written:
        cosine = np.einsum("ne,ne->n", captions, images)
        return Written(nearest(captions, images), cosine, rank_matches(images, captions, np.arange(len(images))).t2i)

    return [locate(vectors[[place[text] for text in each]]) if each else None for each in texts]


def map_of(vectors: NDArray[np.float32]) -> NDArray[np.float64] | None:
    """t-SNE of N unit vectors: (N, 2) between 0 and 1, or None if there are too few or they are all the same."""
    from vitcapr.report.figures.embeddings import tsne

    if len(vectors) < _LEAST or np.ptp(vectors, axis=0).max() == 0:
        return None
    places, _ = tsne(vectors)
    low, high = places.min(axis=0), places.max(axis=0)
    scaled: NDArray[np.float64] = 0.5 + (places - (low + high) / 2) / max(float((high - low).max()), 1e-12)
    return scaled
