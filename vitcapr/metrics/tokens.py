"""Tokens of captions and references: COCO's PTB tokenizer for English, characters for other languages."""

from collections.abc import Mapping, Sequence

from vitcapr.metrics.base import ENGLISH, Caption, check_text, check_tokens
from vitcapr.metrics.java import tokenize
from vitcapr.text.normalise import units_of


def tokenizer_name(language: str) -> str:
    """What a protocol says after ``tok:``."""
    return "ptb" if language == ENGLISH else "characters"


def tokenize_all(
    candidates: Sequence[Caption], references: Mapping[str, Sequence[str]], language: str
) -> tuple[list[str], dict[str, list[str]]]:
    """The tokens of each candidate, and those of each image's references, joined by a space.

    English: in one call of the PTB tokenizer. Other languages: Chinese characters, and runs of other letters and digits
    (:func:`vitcapr.text.normalise.units_of`).
    """
    flat = [*candidates, *(Caption(image, text) for image, texts in references.items() for text in texts)]
    for caption in flat:
        check_text(caption)
    texts = tokenize(flat) if language == ENGLISH else [" ".join(units_of(each.text)) for each in flat]
    tokens = iter(texts)
    words = [next(tokens) for _ in candidates]
    reference_words = {image: [next(tokens) for _ in texts] for image, texts in references.items()}
    check_tokens(candidates, [reference_words[candidate.image_id] for candidate in candidates], words)
    return words, reference_words
