"""Settings of a search that contradict each other."""

from vitcapr.errors import UserError


def check_lengths(min_length: int, max_length: int) -> None:
    if min_length > max_length:
        raise UserError(
            f"decoding.min_length {min_length} is above decoding.max_length {max_length}",
            remedy="no caption could be that long and that short; lower min_length",
        )


def check_found(found: bool) -> None:
    """Blocking n-grams of a tiny vocabulary can leave no word to go on with before the minimum length."""
    if not found:
        raise UserError(
            "no caption satisfies the settings: every word is blocked before min_length words are written",
            remedy="lower decoding.min_length or raise decoding.block_ngram",
        )
