"""Claim accuracy: the share of a caption's claims that agree with the known content of the picture.

n-gram scores hardly move when "three" should be "four" or "left" should be "right"; a reader does.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from vitcapr.data.scenes.reading import Told, ToldGroup
from vitcapr.metrics.bootstrap import Measure, mean_measure, ratio_measure

KINDS_OF_CLAIM = ("objects", "counts", "sizes", "textures", "colors", "relations", "places")


def claim_accuracy(told: Sequence[Told], truth: Sequence[Told]) -> dict[str, Measure]:
    """The claim accuracy of N captions.

    Args:
        told: what each caption says.
        truth: all that is so, of each picture.

    Returns:
        ``facts_true``: the share of captions that name an object and say nothing that is not so, which is what a
        reader agrees with. ``facts_told``: of all claims that could be made, the share that is made, and right.
        ``facts_objects`` and so on for each of :data:`KINDS_OF_CLAIM`: of the claims of that kind the share that is
        right. What is said of an object that is not there counts as one wrong object and no more.
    """
    right, said, known = (np.zeros((len(told), len(KINDS_OF_CLAIM))) for _ in range(3))
    for number, (caption, picture) in enumerate(zip(told, truth, strict=True)):
        for kind, is_right in _claims(caption, picture):
            said[number, KINDS_OF_CLAIM.index(kind)] += 1
            right[number, KINDS_OF_CLAIM.index(kind)] += is_right
        for kind, _ in _claims(picture, picture):
            known[number, KINDS_OF_CLAIM.index(kind)] += 1
    names_one = said[:, KINDS_OF_CLAIM.index("objects")] > 0
    return {
        "facts_true": mean_measure(names_one & (right == said).all(axis=1)),
        "facts_told": ratio_measure(right.sum(axis=1), known.sum(axis=1)),
        **{
            f"facts_{kind}": ratio_measure(right[:, column], said[:, column])
            for column, kind in enumerate(KINDS_OF_CLAIM)
        },
    }


def _claims(caption: Told, picture: Told) -> Iterator[tuple[str, bool]]:
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


def _looks(group: ToldGroup, meant: ToldGroup) -> Iterator[tuple[str, bool]]:
    for kind, said, so in (
        ("counts", group.count, meant.count),
        ("sizes", group.size, meant.size),
        ("textures", group.texture, meant.texture),
        ("colors", group.color, meant.color),
    ):
        if said is not None:
            yield kind, said == so
