"""The Penn Treebank's way to cut a text into words, without nltk, which takes more than a second to import.

The rules are those of R. MacIntyre's tokenizer.sed (1995), in the order of nltk's ``TreebankWordTokenizer``. A test
compares the words of both.
"""

import re

_RULES = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Opening quotes.
        (r'^"', "``"),
        (r"``", r" \g<0> "),
        (r"([ (\[{<])(\"|'{2})", r"\1 `` "),
        # Punctuation; a full stop only at the end of the text.
        (r"([:,])(\D)", r" \1 \2"),
        (r"[:,]$", r" \g<0> "),
        (r"\.\.\.", " ... "),
        (r"[;@#$%&]", r" \g<0> "),
        (r"([^.])(\.)([\])}>\"']*)\s*$", r"\1 \2\3 "),
        (r"[?!]", r" \g<0> "),
        (r"([^'])' ", r"\1 ' "),
        (r"[\]\[(){}<>]", r" \g<0> "),
        (r"--", " -- "),
    )
]
_ENDINGS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Closing quotes.
        (r"''", " '' "),
        (r'"', " '' "),
        # Clitics: 's, 'm, 'd, 'll, 're, 've, n't.
        (r"([^' ])('[sSmMdD]|') ", r"\1 \2 "),
        (r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),
        # Contractions.
        (r"(?i)\b(can)(not)\b", r" \1 \2 "),
        (r"(?i)\b(d)('ye)\b", r" \1 \2 "),
        (r"(?i)\b(gim|lem)(me)\b", r" \1 \2 "),
        (r"(?i)\b(gon)(na)\b", r" \1 \2 "),
        (r"(?i)\b(got)(ta)\b", r" \1 \2 "),
        (r"(?i)\b(more)('n)\b", r" \1 \2 "),
        (r"(?i)\b(wan)(na)(?=\s)", r" \1 \2 "),
        (r"(?i) ('t)(is)\b", r" \1 \2 "),
        (r"(?i) ('t)(was)\b", r" \1 \2 "),
    )
]
"""Rules of a text between two spaces."""


def treebank_words(text: str) -> list[str]:
    """The words of one sentence.

    >>> treebank_words("They can't fetch Anna's ball.")
    ['They', 'ca', "n't", 'fetch', 'Anna', "'s", 'ball', '.']
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    text = f" {text} "
    for pattern, replacement in _ENDINGS:
        text = pattern.sub(replacement, text)
    return text.split()
