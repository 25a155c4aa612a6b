"""Titles and clauses of a caption, in Chinese and English, by its punctuation."""

import re

_TITLE = re.compile("《[^《》]*》|〈[^〈〉]*〉|<[^<>]*>")
_CLAUSE_END = re.compile(r"[,.;:!?](?=\s|$)|[，。；：！？]")
_WORD = re.compile(r"\w")


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
