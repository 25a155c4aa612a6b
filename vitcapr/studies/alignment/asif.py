"""ASIF: nothing is fitted; an item is described by how near it is to the training pairs.

Norelli et al. 2022, ASIF: Coupled Data Turns Unimodal Models to Multimodal Without Training, algorithm 1. With
(x_1, y_1) to (x_n, y_n) the features of the training pairs, of length 1:

    a_i = cos(x, x_i) for an image,    b_i = cos(y, y_i) for a text

Of each vector the k largest entries are kept and raised to the power p, the others are 0. The score is the cosine of a
and b.
"""

from collections.abc import Iterator

import numpy as np

from vitcapr.studies.alignment.interface import Alignment, Fitted, Float32s, Pairs, unit

KEPT = (100, 800)
POWERS = (1, 8)


def fit_asif(train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:  # noqa: ARG001
    """For every number of entries kept and every power."""
    for kept in sorted({min(kept, len(train.texts)) for kept in KEPT}):
        for power in POWERS:
            yield Fitted({"kept": kept, "power": power}, asif(train.image_of_text, train.texts, kept, power))


def asif(images: Float32s, texts: Float32s, kept: int, power: int) -> Alignment:
    """Describe items by paired rows, (n, Di) and (n, Dt); E is n."""
    return Alignment(
        lambda rows: relative(rows, images, kept, power),
        lambda rows: relative(rows, texts, kept, power),
    )


def relative(rows: Float32s, anchors: Float32s, kept: int, power: int) -> Float32s:
    """The relative representation of rows (m, D): (m, n), of length 1.

    Entries below 0 count as 0. Of entries equal to the k-th largest, all are kept.
    """
    near: Float32s = np.matmul(unit(rows), unit(anchors).T)
    np.maximum(near, 0, out=near)
    least = np.partition(near, len(anchors) - kept, axis=1)[:, len(anchors) - kept, None]
    near[near < least] = 0
    near **= power
    return unit(near)
