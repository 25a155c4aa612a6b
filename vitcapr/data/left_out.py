"""Count the images and captions that a data set leaves out, by reason."""

from collections import Counter
from collections.abc import Iterable

FILE = "rejected.csv"
EMPTY_SPLIT = "use more images or other shares, or set run.splits to splits that have images"
"""The remedy for a split without images."""


def count_reasons(reasons: Iterable[str], most: int = 5) -> str:
    """Return the number of items for each of the commonest reasons: ``2 x image without a caption, 1 x no such file``.

    The text of a reason after a colon is of its item, and does not count.
    """
    counts = Counter(reason.partition(": ")[0] for reason in reasons)
    more = f" and {len(counts) - most} more reasons" if len(counts) > most else ""
    return ", ".join(f"{number:,} x {reason}" for reason, number in counts.most_common(most)) + more
