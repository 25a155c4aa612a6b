"""The verdict on a difference, from its interval."""

HIGHER, LOWER, NOT_SHOWN, NOT_TESTED = "higher", "lower", "no difference shown", "not tested"


def verdict(low: float, high: float) -> str:
    """Of a difference with such a 95 % interval."""
    if low > 0:
        return HIGHER
    return LOWER if high < 0 else NOT_SHOWN
