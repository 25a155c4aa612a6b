"""The Penn Treebank rules that cut English text into words, as NLTK's ``TreebankWordTokenizer`` has them.

The same words as NLTK's (a test holds them together) without importing NLTK, which loads scipy and scikit-learn for
seconds. Source: R. MacIntyre's sed script ``tokenizer.sed`` (University of Pennsylvania) and NLTK (Apache License 2.0).
"""

import re

_RULES = (
    # Opening quotes.
    (r"^\"", r"``"),
    (r"(``)", r" \1 "),
    (r"([ \(\[{<])(\"|\'{2})", r"\1 `` "),
    # Punctuation; the last full stop of the text is a word.
    (r"([:,])([^\d])", r" \1 \2"),
    (r"([:,])$", r" \1 "),
    (r"\.\.\.", r" ... "),
    (r"[;@#$%&]", r" \g<0> "),
    (r"([^\.])(\.)([\]\)}>\"']*)\s*$", r"\1 \2\3 "),
    (r"[?!]", r" \g<0> "),
    (r"([^'])' ", r"\1 ' "),
    (r"[\]\[\(\)\{\}\<\>]", r" \g<0> "),
    (r"--", r" -- "),
)
_ENDINGS = (
    # Closing quotes, and what an apostrophe joins.
    (r"''", " '' "),
    (r'"', " '' "),
    (r"([^' ])('[sS]|'[mM]|'[dD]|') ", r"\1 \2 "),
    (r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),
    # Words that are written as one.
    (r"(?i)\b(can)(not)\b", r" \1 \2 "),
    (r"(?i)\b(d)('ye)\b", r" \1 \2 "),
    (r"(?i)\b(gim)(me)\b", r" \1 \2 "),
    (r"(?i)\b(gon)(na)\b", r" \1 \2 "),
    (r"(?i)\b(got)(ta)\b", r" \1 \2 "),
    (r"(?i)\b(lem)(me)\b", r" \1 \2 "),
    (r"(?i)\b(more)('n)\b", r" \1 \2 "),
    (r"(?i)\b(wan)(na)(?=\s)", r" \1 \2 "),
    (r"(?i) ('t)(is)\b", r" \1 \2 "),
    (r"(?i) ('t)(was)\b", r" \1 \2 "),
)
_COMPILED, _COMPILED_ENDINGS = (
    [(re.compile(pattern), replacement) for pattern, replacement in rules] for rules in (_RULES, _ENDINGS)
)


def treebank_words(text: str) -> list[str]:
    """The words of a sentence. Quotes become ```` `` ```` and ``''``."""
    for pattern, replacement in _COMPILED:
        text = pattern.sub(replacement, text)
    text = f" {text} "
    for pattern, replacement in _COMPILED_ENDINGS:
        text = pattern.sub(replacement, text)
    return text.split()
