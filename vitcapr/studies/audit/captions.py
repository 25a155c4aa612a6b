"""What the words of captions say by themselves: odd captions, and captions of two splits."""

from collections.abc import Iterable
from functools import cache
from unicodedata import name

import numpy as np
import pandas as pd
from pandas.util import hash_array

from vitcapr.text.normalise import units_of

LANGUAGE, ONE_WORD, REPEATED, LONG = "another language", "one word", "equal for many images", "longer than read"
SHARED = "in the training split word for word"
ODD = (LANGUAGE, ONE_WORD, REPEATED, LONG, SHARED)
HELD_OUT = ("validation", "test")
MANY = 10
"""Images with one and the same caption."""
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


def caption_facts(parts: Iterable[pd.DataFrame], longest: float) -> pd.DataFrame:
    """A row for each caption: ``image_row``, ``held_out``, and whether it is odd in each of the ways of ``ODD``.

    Args:
        parts: tables with the columns ``image_row, split, language, text``.
        longest: tokens that the encoder reads.
    """
    facts = pd.concat([_facts_of_words(part, longest) for part in parts], ignore_index=True)
    images = facts[["digest", "image_row"]].drop_duplicates()["digest"].value_counts()
    facts[REPEATED] = facts["digest"].map(images) >= MANY
    facts[SHARED] = facts["held_out"] & facts["digest"].isin(facts["digest"][facts["train"]])
    return facts[["image_row", "held_out", *ODD]]


def _facts_of_words(part: pd.DataFrame, longest: float) -> pd.DataFrame:
    """Eight bytes stand for the words of a caption, so ten million fit in memory."""
    words = [units_of(text) for text in part["text"]]
    texts = [" ".join(each or [text]) for each, text in zip(words, part["text"], strict=True)]
    return pd.DataFrame(
        {
            "image_row": part["image_row"].to_numpy(),
            "train": part["split"].to_numpy() == "train",
            "held_out": part["split"].isin(HELD_OUT).to_numpy(),
            "digest": hash_array(np.array(texts, object)),
            LANGUAGE: [is_foreign(*each) for each in zip(words, part["language"], strict=True)],
            ONE_WORD: [len(each) < 2 for each in words],
            # A word is at least a token, and two tokens are special.
            LONG: [len(text.split()) + 2 > longest for text in part["text"]],
        }
    )


def is_foreign(words: list[str], language: str) -> bool:
    """Whether most letters of a caption are of another script than that of its language."""
    letters = [letter for word in words for letter in word if letter.isalpha()]
    expected = _SCRIPTS.get(language.lower().partition("-")[0], ("LATIN",))
    return 2 * sum(_script(letter) in expected for letter in letters) < len(letters)


@cache
def _script(letter: str) -> str:
    return name(letter, "").partition(" ")[0]
