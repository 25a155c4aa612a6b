"""What the words of captions say by themselves: odd captions, and captions that two splits share.

Sixteen bytes are kept of each caption, so ten million fit in memory.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from unicodedata import name

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitcapr.formats.manifest import SPLITS
from vitcapr.text.normalise import units_of

LANGUAGE, ONE_WORD, REPEATED, LONG = "another language", "one word", "equal for many images", "longer than read"
ODD = (LANGUAGE, ONE_WORD, REPEATED, LONG)
MANY = 10
"""Images with one and the same caption."""
_LATIN = ("LATIN",)
_SCRIPTS = {
    **dict.fromkeys(("zh", "yue"), ("CJK",)),
    "ja": ("CJK", "HIRAGANA", "KATAKANA"),
    "ko": ("HANGUL", "CJK"),
    **dict.fromkeys(("ru", "uk", "bg", "sr", "mk", "be", "kk"), ("CYRILLIC",)),
    "el": ("GREEK",),
    "he": ("HEBREW",),
    **dict.fromkeys(("ar", "fa", "ur", "ps"), ("ARABIC",)),
    **dict.fromkeys(("hi", "mr", "ne"), ("DEVANAGARI",)),
    "bn": ("BENGALI",),
    "ta": ("TAMIL",),
    "te": ("TELUGU",),
    "th": ("THAI",),
}
"""The scripts of languages that are not written in Latin letters, by the first words of Unicode's names of letters."""
_FUNCTION_WORDS = {
    "en": "the and with of are while at by his her their two near",
    "de": "der das und mit auf ein eine einen einem einer dem im von ist sind",
    "fr": "le les des une et dans avec sur est sont du aux près",
    "es": "el los las una y en con sobre está están del por",
    "it": "il gli una e nel con su che della sono mentre",
    "pt": "o os uma e em com um na no do da ao estão",
    "nl": "een het met op en van zijn aan voor naast twee",
}
"""Words without which few captions do, each in the list of one language alone."""


@dataclass(frozen=True)
class CaptionFacts:
    """Of each of M captions: the row of its image, the number of its split in ``SPLITS``, a digest of its words, and
    whether it is odd in each of the ways of ``ODD`` (M, 4)."""

    image_row: NDArray[np.int64]
    split: NDArray[np.int8]
    digest: NDArray[np.uint64]
    odd: NDArray[np.bool_]

    def shared_with_train(self) -> NDArray[np.bool_]:
        """Whether a caption of the validation or test split stands in the training split word for word."""
        held_out = np.isin(self.split, [SPLITS.index("validation"), SPLITS.index("test")])
        return held_out & np.isin(self.digest, self.digest[self.split == SPLITS.index("train")])


def read_facts(parts: Iterable[pd.DataFrame], is_cut: Callable[[str], bool]) -> CaptionFacts:
    """Read captions once.

    Args:
        parts: tables with the columns ``image_row, split, language, text``.
        is_cut: whether the encoder reads only the beginning of a text.
    """
    rows, splits, digests, odd = [], [], [], []
    for part in parts:
        units = [units_of(text) for text in part["text"]]
        rows.append(part["image_row"].to_numpy(np.int64))
        splits.append(part["split"].map(SPLITS.index).to_numpy(np.int8))
        texts = (" ".join(words or [text]) for words, text in zip(units, part["text"], strict=True))
        digests.append(np.frombuffer(b"".join(_digest(text) for text in texts), np.uint64))
        facts = zip(part["text"], part["language"], units, strict=True)
        odd.append(
            [(is_foreign(words, language), len(words) < 2, False, is_cut(text)) for text, language, words in facts]
        )
    image_row, digest = np.concatenate(rows), np.concatenate(digests)
    flags = np.concatenate([np.array(each, bool).reshape(-1, len(ODD)) for each in odd])
    pairs = np.unique(np.column_stack([digest, image_row.astype(np.uint64)]), axis=0)
    same, images = np.unique(pairs[:, 0], return_counts=True)
    flags[:, ODD.index(REPEATED)] = images[np.searchsorted(same, digest)] >= MANY
    return CaptionFacts(image_row, np.concatenate(splits), digest, flags)


def is_foreign(words: list[str], language: str) -> bool:
    """Whether a caption is in another language than stated: most of its letters are of another script, or at least two
    of its words are function words of another language, and fewer are of the stated one.

    Function words are known of seven languages. Other languages in Latin letters are told apart by their script alone.
    """
    own = language.lower().partition("-")[0]
    letters = [letter for word in words for letter in word if letter.isalpha()]
    expected = _SCRIPTS.get(own, _LATIN)
    if letters and 2 * sum(_script(letter) in expected for letter in letters) < len(letters):
        return True
    if own not in _FUNCTION_WORDS:
        return False
    counts = {each: sum(word in listed for word in words) for each, listed in _function_words().items()}
    return max(counts.values()) >= 2 and max(counts.values()) > counts[own]


@cache
def _function_words() -> dict[str, frozenset[str]]:
    return {language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()}


@cache
def _script(letter: str) -> str:
    return name(letter, "").partition(" ")[0]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
