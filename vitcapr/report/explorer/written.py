"""The captions of systems in the space of a retrieval model: what they are near to, and the rank of their image."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vitcapr.metrics.ranks import rank_matches
from vitcapr.report.explorer.neighbours import Nearest, nearest
from vitcapr.report.explorer.results import Space, System

Embed = Callable[[int, str, Sequence[str]], NDArray[np.float32] | None]
"""From the number of an experiment, the name of its retrieval model and n texts to (n, E) unit vectors; None if the
model cannot embed them."""


@dataclass(frozen=True, eq=False)
class Written:
    """One system's captions of the N images of a space, in their order.

    Attributes:
        nearest: images.
        cosine: (N,) of each caption with its own image.
        ranks: (N,) of its own image among all; images with the same cosine come before it.
    """

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
    found: list[Written | None] = []
    for each in texts:
        if not each:
            found.append(None)
            continue
        captions = vectors[[place[text] for text in each]]
        images = space.embedded.images
        cosine = np.einsum("ne,ne->n", captions, images)
        ranks = rank_matches(images, captions, np.arange(len(images))).t2i
        found.append(Written(nearest(captions, images), cosine, ranks))
    return found
