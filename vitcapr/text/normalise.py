"""A caption as the words that a captioner learns: cleaned, then cut by the Penn Treebank rules."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal

NonLetters = Literal["space", "remove", "keep"]

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""The ranges of Chinese characters, for a regular expression."""
_HAN = re.compile(f"([{HAN}])")
_SPACE_BESIDE_HAN = re.compile(f"(?<=[{HAN}]) | (?=[{HAN}])")
_VARIATION_SELECTORS = {chr(code) for code in range(0xFE00, 0xFE10)}  # They follow a sign such as a heart.
_JOINERS = str.maketrans("", "", "\u200c\u200d")  # Persian and Indian scripts write them inside words.


def clean(text: str, non_letters: NonLetters = "remove") -> str:
    """``text`` in lower case, with non-letters treated as configured.

    A letter is one in any script, with its marks: Hindi and Thai write most vowels as marks. Composed and decomposed
    accents are one spelling (NFC).

    Args:
        non_letters: ``space`` puts a space for each ("t-shirt" -> "t shirt"), ``remove`` nothing ("t-shirt" ->
            "tshirt"; white space stays), ``keep`` leaves them to the tokenizer.
    """
    lower = unicodedata.normalize("NFC", text.lower())
    if non_letters == "space":
        return "".join(sign if sign.isalpha() or _is_mark(sign) else " " for sign in lower.translate(_JOINERS))
    if non_letters == "remove":
        return "".join(sign for sign in lower if sign.isalpha() or _is_mark(sign) or sign.isspace())
    return lower


def _is_mark(sign: str) -> bool:
    """Return whether the sign belongs to the letter before it: an accent or a vowel."""
    return unicodedata.category(sign) in ("Mn", "Mc") and sign not in _VARIATION_SELECTORS


def tokenize(text: str) -> list[str]:
    """Return the words of ``text`` by NLTK's Treebank rules; a Chinese character is a word of its own.

    Those rules cut at white space, which Chinese does not write: a whole caption would be one word.
    """
    return [str(token) for token in _treebank().tokenize(_HAN.sub(r" \1 ", text))]


def join_words(words: Iterable[str]) -> str:
    """Return the words as a caption: a space between two words, but not beside a Chinese character.

    >>> join_words(["一", "个", "男", "人"]), join_words(["a", "man"])
    ('一个男人', 'a man')
    """
    return _SPACE_BESIDE_HAN.sub("", " ".join(words))


def units_of(text: str) -> list[str]:
    """Return the Chinese characters of ``text`` and its runs of other letters, in lower case.

    A run includes marks and digits.

    >>> units_of("一个NBA球员,3分!"), units_of("लाल कुत्ता, 2 बसें")
    (['一', '个', 'nba', '球', '员', '3', '分'], ['लाल', 'कुत्ता', '2', 'बसें'])
    """
    signs = [" "]
    for sign in _HAN.sub(r" \1 ", unicodedata.normalize("NFKC", text.lower()).translate(_JOINERS)):
        # A mark after a space is an accent that was typed as a sign: NFKC writes "´" so.
        signs.append(sign if sign.isalnum() or (signs[-1] != " " and _is_mark(sign)) else " ")
    return "".join(signs).split()


@cache
def _treebank() -> Any:
    """NLTK's tokenizer. Its import takes seconds, and commands that read no words do not need it."""
    from nltk.tokenize import TreebankWordTokenizer

    return TreebankWordTokenizer()


def words_of(text: str, *, non_letters: NonLetters = "remove", drop_one_letter: bool = False) -> list[str]:
    """Return the words of a caption, from the raw text.

    Args:
        drop_one_letter: leave out words of one letter; a Chinese character is a word, not a letter.
    """
    words = tokenize(clean(text, non_letters))
    if not drop_one_letter:
        return words
    return [word for word in words if len(word) > 1 or not word.isalpha() or _HAN.fullmatch(word)]
