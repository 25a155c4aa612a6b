"""Reference-free measures of captions: their diversity, their endings and their loops."""

from collections import Counter
from collections.abc import Iterable, Sequence

from vitcapr.metrics.bootstrap import Measure, mean_measure
from vitcapr.metrics.caption_metric import ENGLISH, CaptionMetric, TokenisedCaptions

_FUNCTION_WORDS = """
    a an the this that these those its his her their my your our some any each every no
    of in on at by to from with for into onto over under near behind beside between through across along around against
    above below during before after while up off as like than about toward towards among beneath
    and or but nor so if because which who whose whom when where
    is are was were be been being am has have had do does did can could will would shall should may might must
    very
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English function words that rarely end a complete caption."""


def distinct(captions: Sequence[Sequence[str]], order: int) -> float:
    """Return the ratio of distinct n-grams to all n-grams of the captions; nan if there are none.

    Li et al., A Diversity-Promoting Objective Function for Neural Conversation Models (2016).
    """
    counts = Counter(
        tuple(words[start : start + order]) for words in captions for start in range(len(words) - order + 1)
    )
    return len(counts) / counts.total() if counts else float("nan")


def vocabulary_used(captions: Sequence[Sequence[str]]) -> int:
    """Return the number of distinct words in the captions."""
    return len({word for words in captions for word in words})


def identical_captions(captions: Sequence[Sequence[str]]) -> int:
    """Return the number of captions that also occur for another image."""
    return sum(count for count in Counter(map(tuple, captions)).values() if count > 1)


def length_mean(captions: Sequence[Sequence[str]]) -> Measure:
    """Words in a caption, on average."""
    return mean_measure([len(words) for words in captions])


def novel_share(captions: Sequence[str], training: Iterable[str]) -> Measure:
    """Return the share of captions that no training image has, both as they were written.

    Case, punctuation, numerals and words of one letter, which a vocabulary may leave out, do not make a caption new.
    """
    seen = {letters for caption in training for letters in _letters(caption)}
    return mean_measure([seen.isdisjoint(_letters(caption)) for caption in captions])


def _letters(caption: str) -> tuple[str, str]:
    """Return the letters of all longer words, with other characters as gaps, and without them.

    "t-shirt" gives "shirt" and "tshirt".
    """
    parted = "".join(sign if sign.isalpha() else " " for sign in caption.lower()).split()
    joined = ("".join(filter(str.isalpha, word)) for word in caption.lower().split())
    one, other = ("".join(w for w in words if len(w) > 1 or not w.isascii()) for words in (parted, joined))
    return one, other


def dangling_share(captions: Sequence[Sequence[str]]) -> Measure:
    """Return the share of captions that end in a function word, as 'a man on a' does."""
    return mean_measure([words[-1] in FUNCTION_WORDS for words in captions])


def loops(words: Sequence[str]) -> bool:
    """Say whether a caption has two or more words twice in a row, or one word three times.

    'a red and black and black' loops.
    """

    def repeats(size: int) -> bool:
        length = max(2 * size, 3)
        return any(
            words[start : start + length - size] == words[start + size : start + length]
            for start in range(len(words) - length + 1)
        )

    return any(map(repeats, range(1, len(words) // 2 + 1)))


def loop_share(captions: Sequence[Sequence[str]]) -> Measure:
    """Return the share of captions that loop (:func:`loops`)."""
    return mean_measure([loops(words) for words in captions])


def _diversity(captions: TokenisedCaptions) -> dict[str, Measure | float]:
    words = [text.split() for text in captions.tokenised]
    return {
        "length_mean": length_mean(words),
        **({"dangling_share": dangling_share(words)} if captions.language == ENGLISH else {}),
        "loop_share": loop_share(words),
        "novel_share": novel_share(captions.written, captions.training()),
        "distinct_1": distinct(words, 1),
        "distinct_2": distinct(words, 2),
        "vocabulary_used": vocabulary_used(words),
        "identical_captions": identical_captions(words),
    }


METRIC = CaptionMetric(measure=_diversity)
