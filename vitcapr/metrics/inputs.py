"""Checks captions before scoring. Invalid captions would make a scorer hang or return wrong scores."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vitcapr.errors import UserError

_LINE_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""What the Java programs, which read line by line, would take for the end of a caption."""


def one_line(text: str) -> str:
    """``text`` with spaces for line breaks, as COCO's evaluation reads captions."""
    return _LINE_BREAK.sub(" ", text)


class Caption(NamedTuple):
    """A caption and the image it is of, so that an error can name both."""

    image_id: str
    text: str


def check_candidates(captions: Mapping[str, str], images: Sequence[str]) -> list[str]:
    """The caption of each of ``images``, in their order.

    Args:
        captions: by image id.

    Raises:
        UserError: an image has no caption or is not among ``images``; a caption is empty or breaks the line.
    """
    for image, text in captions.items():
        check_text(Caption(image, text))
    if missing := [image for image in images if image not in captions]:
        raise UserError(
            f"{len(missing)} of {len(images)} images of the split have no caption",
            where=f"image {missing[0]}",
            remedy="decode the whole split",
        )
    if foreign := captions.keys() - set(images):
        raise UserError("a caption is of an image that is not in the split", where=f"image {min(foreign)}")
    return [captions[image] for image in images]


def check_text(caption: Caption) -> None:
    """Raises:
    UserError: the caption is empty or breaks the line, which the scorers would hang on or miscount.
    """
    if not caption.text.strip():
        raise UserError(
            "an empty caption cannot be scored",
            where=f"image {caption.image_id}",
            remedy="set decoding.min_length to at least 1, or write a caption with words",
        )
    if match := _LINE_BREAK.search(caption.text):
        raise UserError(
            f"a caption holds the line break {match.group()!r}",
            where=f"image {caption.image_id}, caption {caption.text!r}",
            remedy="write a space instead",
        )


def check_tokens(candidates: Sequence[Caption], references: Sequence[Sequence[str]], words: Sequence[str]) -> None:
    """Raises:
    UserError: tokenising left nothing of a candidate, ``words``, or of all the references of an image.
    """
    for candidate, others, left in zip(candidates, references, words, strict=True):
        where = f"image {candidate.image_id}, caption {candidate.text!r}"
        if not left:
            raise UserError("a caption has no word in it", where=where, remedy="write a caption with words")
        if not any(others):
            raise UserError("no reference of an image has a word in it", where=f"image {candidate.image_id}")
