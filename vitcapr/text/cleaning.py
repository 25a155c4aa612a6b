"""Cleaning captions in Chinese and English, counting what it removes.

Removed: control characters, punctuation and other symbols, filler words ("wow", "oh", "eh"), and the spaces inside
Chinese. Kept: title marks, since they tell that a book or film is named; an apostrophe or hyphen inside an English
word, which is part of it; a space between two Latin words, also within Chinese.
"""

import re
import unicodedata
from collections import Counter
from functools import cache

TITLE_MARKS = "《》〈〉<>"
ENGLISH_FILLERS = ("wow", "oh", "eh", "ah", "aw", "uh", "um", "er", "hmm", "huh", "hey", "oops", "yay", "ooh", "aha")
CHINESE_FILLERS = "哇啊哦噢呃嗯哎唉嘿呀欸喔唔"
"""They are part of words too, so they are fillers only in a run that begins or ends a clause."""

_ENGLISH_FILLER = re.compile(rf"(?<![\w'-])(?:{'|'.join(ENGLISH_FILLERS)})(?![\w'-])", re.IGNORECASE)
_CHINESE_FILLER = re.compile(
    rf"(?:(?<=^)|(?<=[^\w]))[{CHINESE_FILLERS}]+(?=[^{CHINESE_FILLERS}]|$)|[{CHINESE_FILLERS}]+(?=[^\w]|$)"
)
_INSIDE_WORD = re.compile(r"(?<=[A-Za-z0-9])['’\-](?=[A-Za-z0-9])")
_SPACE_IN_CHINESE = re.compile(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])")


class Cleaner:
    """Cleans captions one by one and counts, by language.

    Attributes:
        removed: for each language, the number of ``captions``, of them ``emptied`` those that had nothing left; the
            ``characters``, ``symbols`` (punctuation, title marks and the inside of words included) and ``spaces``
            before, and the ``fillers``, as words; the characters ``kept`` and of them the ``title_marks``.
    """

    def __init__(self) -> None:
        self.removed: dict[str, Counter[str]] = {}

    def clean(self, text: str, language: str) -> str:
        """Return the caption as it is learnt; empty where there was nothing but symbols and fillers."""
        cleaned, fillers = clean(text, language)
        self.removed.setdefault(language, Counter()).update(
            captions=1,
            emptied=int(not cleaned),
            characters=len(text),
            kept=len(cleaned),
            symbols=sum(map(is_symbol, text)),
            spaces=sum(map(str.isspace, text)),
            fillers=fillers,
            title_marks=sum(character in TITLE_MARKS for character in cleaned),
        )
        return cleaned


@cache
def is_symbol(character: str) -> bool:
    """Return whether a character is punctuation or another symbol (Unicode's classes P and S)."""
    return unicodedata.category(character)[0] in "PS"


def clean(text: str, language: str) -> tuple[str, int]:
    """Return the cleaned caption, and how many fillers it lost.

    >>> clean("Wow ! A man's T-shirt , red .", "en")
    ("A man's T-shirt red", 1)
    >>> clean("哇，一个 男人在看《三体》！", "zh")
    ('一个男人在看《三体》', 1)
    """
    text = "".join(" " if character.isspace() else character for character in text)
    text = "".join(character for character in text if unicodedata.category(character)[0] != "C")
    pattern = _CHINESE_FILLER if language == "zh" else _ENGLISH_FILLER
    text, fillers = pattern.subn(" ", text)
    inside = {match.start() for match in _INSIDE_WORD.finditer(text)}
    text = "".join(
        " " if is_symbol(character) and character not in TITLE_MARKS and place not in inside else character
        for place, character in enumerate(text)
    )
    text = " ".join(text.split())
    if language == "zh":
        text = _SPACE_IN_CHINESE.sub("", text)
    return text, fillers
