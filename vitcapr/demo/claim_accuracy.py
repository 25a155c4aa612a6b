"""Claim accuracy: the share of a caption's claims that agree with the known content of the picture.

n-gram scores hardly move when "three" should be "four" or "left" should be "right"; a reader does.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from vitcapr.demo.scenes.reading import WORDS, Claims
from vitcapr.formats.claims import Claim
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
        for claim in checked_claims(caption, picture):
            made[number, KINDS_OF_CLAIM.index(claim.kind)] += 1
            right[number, KINDS_OF_CLAIM.index(claim.kind)] += claim.right
        for claim in checked_claims(picture, picture):
            known[number, KINDS_OF_CLAIM.index(claim.kind)] += 1
    names_one = made[:, KINDS_OF_CLAIM.index("objects")] > 0
    return {
        "claims_true": mean_measure(names_one & (right == made).all(axis=1)),
        "claim_recall": ratio_measure(right.sum(axis=1), known.sum(axis=1)),
        **{
            f"claims_{kind}": ratio_measure(right[:, column], made[:, column])
            for column, kind in enumerate(KINDS_OF_CLAIM)
        },
    }


Claimed = str | int | tuple[str, ...]


class CheckedClaim(NamedTuple):
    """A claim of a caption, and what is true of the picture; None where the picture has nothing of the kind.

    ``words``: the places of the words that make it, among the words of the caption that spaces separate.
    """

    kind: str
    claimed: Claimed
    true: Claimed | None
    words: tuple[int, ...]

    @property
    def right(self) -> bool:
        return self.claimed == self.true


def checked_claims(caption: Claims, picture: Claims) -> Iterator[CheckedClaim]:
    """All claims of a caption, each beside what is true of the picture."""
    there = list(picture.groups)
    for group in caption.groups:
        meant = next((other for other in there if other.kind == group.kind), None)
        yield CheckedClaim("objects", group.kind, None if meant is None else meant.kind, group.words["kind"])
        if meant is not None:
            there.remove(meant)
            for name in ("count", "size", "texture", "color"):
                if (claimed := getattr(group, name)) is not None:
                    yield CheckedClaim(f"{name}s", claimed, getattr(meant, name), group.words[name])
    if caption.relation is not None:
        yield CheckedClaim("relations", caption.relation, picture.relation, caption.words["relation"])
    if caption.place is not None:
        yield CheckedClaim("places", caption.place, picture.place, caption.words["place"])


def claims_as_text(caption: Claims, picture: Claims) -> list[Claim]:
    """The claims of a caption, for people."""
    return [
        Claim(one.kind, _to_text(one.claimed), None if one.true is None else _to_text(one.true), one.right, one.words)
        for one in checked_claims(caption, picture)
    ]


def _to_text(claim: Claimed) -> str:
    if not isinstance(claim, tuple):
        return "one" if claim == 1 else WORDS.numbers[claim] if isinstance(claim, int) else claim
    relation, subject, *others = claim  # As in vitcapr.demo.scenes.reading.Claims.
    return " ".join([subject, relation.replace("_", " "), " and ".join(others)]).strip()
