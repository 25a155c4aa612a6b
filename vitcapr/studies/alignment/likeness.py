"""How well two encoders fit each other before anything is trained, by which a pair of encoders or a layer is chosen.

Mutual kNN is that of Huh et al. 2024, The Platonic Representation Hypothesis. Gröger et al. 2025 choose the layers to
align by it.
"""

from typing import NamedTuple

import numpy as np

from vitcapr.studies.alignment.cka import linear_cka, local_cka
from vitcapr.studies.alignment.interface import Float32s, Pairs, unit

NEIGHBOURS = 10
_ITEMS = 5_000
"""Training images among which neighbours are looked for."""


class Likeness(NamedTuple):
    """Attributes:
    cka: linear CKA of the pairs.
    mutual_neighbours: mutual kNN of up to 5,000 training images and their first texts.
    matched: share of the held-out pairs whose text comes first by local CKA with the pairs as base.
    """

    cka: float
    mutual_neighbours: float
    matched: float


def mutual_neighbours(x: Float32s, y: Float32s, k: int) -> float:
    """The mean share of its k nearest items by cosine that an item has in both spaces.

    Args:
        x, y: (n, Dx) and (n, Dy), features of the same items.
    """
    near = []
    for rows in (unit(x), unit(y)):
        cosines = rows @ rows.T
        np.fill_diagonal(cosines, -np.inf)
        chosen = np.zeros(cosines.shape, bool)
        np.put_along_axis(chosen, np.argpartition(-cosines, k - 1, axis=1)[:, :k], True, axis=1)
        near.append(chosen)
    return float((near[0] & near[1]).sum(1).mean() / k)


def likeness(base: Pairs, held_out: Pairs) -> Likeness:
    """Score a pair of encoders by training pairs and by pairs that were held out, one text an image."""
    first, first_of_base = (np.searchsorted(p.caption_image, np.arange(len(p.images))) for p in (held_out, base))
    seen = first_of_base[:_ITEMS]
    mutual = mutual_neighbours(base.images[:_ITEMS], base.texts[seen], min(NEIGHBOURS, len(seen) - 1))
    local = local_cka(base.image_of_text, base.texts)
    scores = local.images(held_out.images) @ local.texts(held_out.texts[first]).T
    matched = float(np.mean(scores.argmax(axis=1) == np.arange(len(scores))))
    return Likeness(linear_cka(base.image_of_text, base.texts), mutual, matched)
