"""What lies next to each image and each reference in the space of a retrieval model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitcapr.formats.embeddings import Embeddings
from vitcapr.report.explorer.gallery import Gallery
from vitcapr.report.explorer.results import Space

SHOWN = 6
"""Neighbours of each."""
_BLOCK = 512
Near = NDArray[np.intp]
Cosines = NDArray[np.float32]


@dataclass(frozen=True)
class Nearest:
    """The K nearest of a pool to each of Q queries, the nearest first.

    Attributes:
        place: (Q, K), in the pool.
        cosine: (Q, K).
    """

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
        found = np.take_along_axis(block, best, axis=1)
        order = np.argsort(-found, axis=1, kind="stable")
        places.append(np.take_along_axis(best, order, axis=1))
        cosines.append(np.take_along_axis(found, order, axis=1))
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
        found = nearest(embedded.captions, embedded.images)
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
                "images": pairs(found.place[place], found.cosine[place], image_of),
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
