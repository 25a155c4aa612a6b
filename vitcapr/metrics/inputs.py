"""Checks captions before scoring. Invalid captions would make a scorer hang or return wrong scores."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from vitcapr.errors import UserError
from vitcapr.formats.captions import CocoCaption

_LINE_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""What the Java programs, which read line by line, would take for the end of a caption."""


ORACLE = "ORACLE, NOT A RESULT:chosen by cider against the references that score it|"
"""Begins the protocol of captions that their references chose: the ceiling of a reranking, never a result."""


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


def is_oracle(results: Iterable[CocoCaption]) -> bool:
    """Whether the references chose a caption."""
    return any(result.oracle is not None for result in results)


def check_oracle_name(decoding: str, where: object) -> None:
    """Raises:
    UserError: captions of an oracle would be scored under a name that does not say so.
    """
    if "oracle" not in decoding.lower():
        raise UserError(
            f"these captions were chosen with the references, and '{decoding}' does not say so",
            where=where,
            remedy="score them under a name that contains 'oracle'",
        )
