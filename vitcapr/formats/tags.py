"""``tags.npz``: the part of speech of every word of every caption; ``tags.json``: which tagger gave them, for people.

The tags are the twelve that are the same for all languages: S. Petrov, D. Das, R. McDonald: A Universal Part-of-Speech
Tagset. LREC 2012.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import write_json
from vitcapr.formats.arrays import read_arrays, write_arrays

FORMAT = "vitcapr-tags-1"
TAGS = ("NOUN", "VERB", "ADJ", "ADV", "PRON", "DET", "ADP", "NUM", "CONJ", "PRT", ".", "X")
NONE = 0
"""Where there is no word; tag t of ``TAGS`` is number t + 1."""

Tagged = tuple[int, int, str]
"""First character, end, tag."""


@dataclass(frozen=True)
class TagTable:
    """The tagged words of M captions, in the order of ``captions.parquet``.

    Attributes:
        offsets: (M+1,) int64; the words of caption m are ``offsets[m]`` to ``offsets[m+1]``.
        start, end: (W,) int32, characters of the caption.
        tag: (W,) int8, places in ``TAGS`` plus 1.
    """

    offsets: np.ndarray
    start: np.ndarray
    end: np.ndarray
    tag: np.ndarray

    def __post_init__(self) -> None:
        if any(array.ndim != 1 for array in vars(self).values()):
            raise ValueError("an array has more than one axis")
        if not len(self.start) == len(self.end) == len(self.tag):
            raise ValueError(f"{len(self.start)} starts, {len(self.end)} ends and {len(self.tag)} tags")
        if not len(self.offsets) or self.offsets[0] != 0 or self.offsets[-1] != len(self.tag):
            raise ValueError("the offsets do not cut the words into captions")
        if (np.diff(self.offsets) < 0).any():
            raise ValueError("the offsets do not cut the words into captions")
        if (self.start < 0).any() or (self.end <= self.start).any():
            raise ValueError("a word has no characters")
        if (self.tag < 1).any() or (self.tag > len(TAGS)).any():
            raise ValueError("a number is not that of a tag")

    @classmethod
    def of(cls, captions: Sequence[Sequence[Tagged]]) -> Self:
        words = [word for caption in captions for word in caption]
        return cls(
            np.cumsum([0, *map(len, captions)], dtype=np.int64),
            np.array([start for start, _, _ in words], np.int32),
            np.array([end for _, end, _ in words], np.int32),
            np.array([TAGS.index(tag) + 1 for _, _, tag in words], np.int8),
        )

    def at(self, caption: int, characters: Sequence[int]) -> list[int]:
        """The tag at each of some characters of a caption, ``NONE`` between words: what joins the tags to the pieces
        of any tokenizer, which says at which character each piece begins."""
        words = slice(int(self.offsets[caption]), int(self.offsets[caption + 1]))
        start, end, tag = self.start[words], self.end[words], self.tag[words]
        if not len(start):
            return [NONE] * len(characters)
        places = np.searchsorted(start, characters, side="right") - 1
        inside = (places >= 0) & (np.asarray(characters) < end[places])
        return [int(number) for number in np.where(inside, tag[places], NONE)]

    def counts(self) -> dict[str, int]:
        """The number of words with each tag."""
        return {tag: int((self.tag == number).sum()) for number, tag in enumerate(TAGS, start=1)}

    def write(self, path: Path) -> None:
        write_arrays(path, vars(self))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises:
        UserError: the file is missing, or is not such a table.
        """
        what, remedy = "a table of tagged words", "run the stage tag_words"
        kinds = dict.fromkeys(("offsets", "start", "end", "tag"), np.integer)
        arrays = read_arrays(path, kinds, what, remedy)
        try:
            return cls(**arrays)
        except ValueError as error:
            raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error


def write_tags_card(path: Path, table: TagTable, taggers: Mapping[str, str], captions: str) -> None:
    """Write how ``table`` was made.

    Args:
        taggers: the tagger of each language.
        captions: sha256 of ``captions.parquet``.
    """
    counted = {"tags": list(TAGS), "counts": table.counts()}
    write_json(path, {"format": FORMAT, "taggers": dict(taggers), **counted, "captions_sha256": captions})
