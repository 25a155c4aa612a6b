"""Cleaning captions in Chinese and English, counting what it removes, and what punctuation says about a caption.

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
_TITLE = re.compile("《[^《》]*》|〈[^〈〉]*〉|<[^<>]*>")
_CLAUSE_END = re.compile(r"[,.;:!?](?=\s|$)|[，。；：！？]")
_WORD = re.compile(r"\w")


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


def title_spans(text: str) -> list[tuple[int, int]]:
    """First character and end of each title, its marks included.

    >>> title_spans("他在看《三体》")
    [(3, 7)]
    """
    return [match.span() for match in _TITLE.finditer(text)]


def second_clause(raw: str, text: str) -> int | None:
    """Return the character of ``text`` with which its second clause begins; None for a caption of one clause.

    Args:
        raw: the caption with its punctuation.
        text: the same, from which cleaning may have removed characters.

    >>> second_clause("Begin with curiosity, end with hurt.", "Begin with curiosity end with hurt")
    21
    """
    for mark in _CLAUSE_END.finditer(raw):
        place = _matched(raw[: mark.end()], text)
        # A removed filler may have matched the first letters of the next word.
        while 0 < place < len(text) and _is_latin(text[place - 1]) and _is_latin(text[place]):
            place -= 1
        place += len(text[place:]) - len(text[place:].lstrip())
        if _WORD.search(text[:place]) and _WORD.search(text[place:]):
            return place
    return None


def _matched(raw: str, text: str) -> int:
    """Return the length of the longest beginning of ``text`` whose letters come in this order in ``raw``."""
    place = 0
    for character in raw:
        while place < len(text) and text[place].isspace():
            place += 1
        if place < len(text) and character == text[place]:
            place += 1
    return place


def _is_latin(character: str) -> bool:
    return character.isascii() and character.isalnum()
