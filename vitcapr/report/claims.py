"""The words of a caption that make wrong claims."""

from collections.abc import Iterable

from vitcapr.formats.claims import Claim


def wrong_words(claims: Iterable[Claim]) -> dict[int, str]:
    """For the place of each wrong word, what is true: "in truth four"."""
    wrong = [claim for claim in claims if not claim.right]
    return {
        place: "not in the picture" if claim.true is None else f"in truth {claim.true}"
        for claim in wrong
        for place in claim.words
    }
