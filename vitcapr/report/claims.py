"""Claims of a caption that are checked against the picture, and the words that make the wrong ones."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from vitcapr.formats.manifest import Manifest


class Claim(NamedTuple):
    """A claim of a caption, and what is true of the image; ``true`` is None where the image has nothing of the kind.

    ``words``: the places of its words among the words of the caption that spaces separate.
    """

    kind: str
    claimed: str
    true: str | None
    right: bool
    words: tuple[int, ...]


CheckClaims = Callable[[str, str], Sequence[Claim]]
"""From an image id and a caption of it to the claims of the caption."""
OpenClaims = Callable[[Manifest, str], CheckClaims | None]
"""From a data set and a split to the check of its captions; None where their claims cannot be checked."""


def no_claims(_: Manifest, __: str) -> None:
    """The :data:`OpenClaims` of data sets of which nothing is known."""


def wrong_words(claims: Iterable[Claim]) -> dict[int, str]:
    """For the place of each wrong word, what is true: "in truth four"."""
    wrong = [claim for claim in claims if not claim.right]
    return {
        place: "not in the picture" if claim.true is None else f"in truth {claim.true}"
        for claim in wrong
        for place in claim.words
    }
