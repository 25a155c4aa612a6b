"""Claim accuracy: the share of a caption's claims that agree with the known content of the picture.

n-gram scores hardly move when "three" should be "four" or "left" should be "right"; a reader does.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from vitcapr.data.scenes.reading import ClaimedGroup, Claims
from vitcapr.metrics.bootstrap import Measure, mean_measure, ratio_measure

KINDS_OF_CLAIM = ("objects", "counts", "sizes", "textures", "colors", "relations", "places")


def claim_accuracy(claims: Sequence[Claims], truth: Sequence[Claims]) -> dict[str, Measure]:
    """The claim accuracy of N captions.

    Args:
        claims: the claims of each caption.
        truth: everything that is true of each picture.

    Returns:
        ``claims_true``: the share of captions that name an object and make no wrong claim. ``claim_recall``: of all
        claims that are possible, the share that the captions make correctly. ``claims_objects`` and so on for each of
        :data:`KINDS_OF_CLAIM`: the share of the claims of that kind that are right. An object that is not in the
        picture counts as one wrong claim, whatever else the caption says of it.
    """
    right, made, known = (np.zeros((len(claims), len(KINDS_OF_CLAIM))) for _ in range(3))
    for number, (caption, picture) in enumerate(zip(claims, truth, strict=True)):
        for kind, is_right in _claims(caption, picture):
            made[number, KINDS_OF_CLAIM.index(kind)] += 1
            right[number, KINDS_OF_CLAIM.index(kind)] += is_right
        for kind, _ in _claims(picture, picture):
            known[number, KINDS_OF_CLAIM.index(kind)] += 1
    names_one = made[:, KINDS_OF_CLAIM.index("objects")] > 0
    return {
        "claims_true": mean_measure(names_one & (right == made).all(axis=1)),
        "claim_recall": ratio_measure(right.sum(axis=1), known.sum(axis=1)),
        **{
            f"claims_{kind}": ratio_measure(right[:, column], made[:, column])
            for column, kind in enumerate(KINDS_OF_CLAIM)
        },
    }


def _claims(caption: Claims, picture: Claims) -> Iterator[tuple[str, bool]]:
    """(kind of claim, whether it is correct) for all claims of a caption."""
    there = list(picture.groups)
    for group in caption.groups:
        meant = next((other for other in there if other.kind == group.kind), None)
        yield "objects", meant is not None
        if meant is not None:
            there.remove(meant)
            yield from _looks(group, meant)
    if caption.relation is not None:
        yield "relations", caption.relation == picture.relation
    if caption.place is not None:
        yield "places", caption.place == picture.place


def _looks(group: ClaimedGroup, meant: ClaimedGroup) -> Iterator[tuple[str, bool]]:
    for kind, claimed, true in (
        ("counts", group.count, meant.count),
        ("sizes", group.size, meant.size),
        ("textures", group.texture, meant.texture),
        ("colors", group.color, meant.color),
    ):
        if claimed is not None:
            yield kind, claimed == true
