"""Captions as word numbers, their parts of speech, and the tokenizer that cuts them into pieces.

The twelve tags are the same for all languages: S. Petrov, D. Das, R. McDonald: A Universal Part-of-Speech Tagset. LREC
2012.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from vitcapr.files import write_json, write_text
from vitcapr.formats.containers import read_arrays, write_arrays
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.records import reading
from vitcapr.formats.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_WHAT, _REMEDY = "a table of captions", "run the vocabulary stage"
_DTYPES = {"ids": np.int32, "offsets": np.int64, "image_row": np.int32, "caption_row": np.int32}


@dataclass(frozen=True, eq=False)
class TokenTable:
    """M captions; caption m is ``ids[offsets[m]:offsets[m + 1]]``, start and end included.

    Attributes:
        ids: (sum of lengths,) int32, word numbers.
        offsets: (M + 1,) int64.
        image_row: (M,) int32, the row of the caption's image in images.parquet.
        caption_row: (M,) int32, the caption's row in captions.parquet.
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]
    image_row: NDArray[np.int32]
    caption_row: NDArray[np.int32]

    def __post_init__(self) -> None:
        captions = len(self.image_row)
        if len(self.caption_row) != captions or len(self.offsets) != captions + 1:
            raise ValueError("the arrays differ in the number of captions")
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.ids) or (np.diff(self.offsets) < 0).any():
            raise ValueError("the offsets do not cut the word numbers into captions")

    @classmethod
    def read(cls, path: Path, data: Manifest | None = None, words: Vocabulary | None = None) -> Self:
        """Return the captions of ``data``, in the numbers of ``words``, where these are given."""
        arrays = read_arrays(path, _DTYPES, _WHAT, _REMEDY)
        with reading(path, _WHAT if data is None else "the captions of this data set", _REMEDY):
            table = cls(**arrays)
            if data is not None:
                owners = data.caption_table.column("image_row").to_numpy()
                if (np.diff(table.caption_row) <= 0).any() or table.caption_row[-1:].sum() >= len(owners):
                    raise ValueError("the rows of captions do not increase, or leave captions.parquet")
                if (owners[table.caption_row] != table.image_row).any():
                    raise ValueError("a caption belongs to another image")
            if words is not None and (table.ids >= len(words)).any():
                raise ValueError(f"a number is not among the {len(words)} of the vocabulary")
            return table

    def write(self, path: Path) -> None:
        write_arrays(path, {name: getattr(self, name) for name in _DTYPES})

    def __len__(self) -> int:
        return len(self.image_row)

    def __getitem__(self, caption: int) -> NDArray[np.int32]:
        if not 0 <= caption < len(self):
            raise IndexError(f"caption {caption} of {len(self)}")
        return self.ids[self.offsets[caption] : self.offsets[caption + 1]]

    def select(self, kept: NDArray[np.bool_]) -> "TokenTable":
        """Return the captions that ``kept``, (M,), marks."""
        return TokenTable(
            ids=self.ids[np.repeat(kept, self.lengths)],
            offsets=np.concatenate(([0], np.cumsum(self.lengths[kept]))).astype(np.int64),
            image_row=self.image_row[kept],
            caption_row=self.caption_row[kept],
        )

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(M,) int64: word numbers in each caption, start and end included."""
        return np.diff(self.offsets)


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
        """Return the tag at each of some characters of a caption, ``NONE`` between words.

        A tokenizer says at which character each piece begins; this joins the tags to its pieces.
        """
        words = slice(int(self.offsets[caption]), int(self.offsets[caption + 1]))
        start, end, tag = self.start[words], self.end[words], self.tag[words]
        if not len(start):
            return [NONE] * len(characters)
        places = np.searchsorted(start, characters, side="right") - 1
        inside = (places >= 0) & (np.asarray(characters) < end[places])
        return [int(number) for number in np.where(inside, tag[places], NONE)]

    def write(self, path: Path) -> None:
        write_arrays(path, vars(self))

    @classmethod
    def read(cls, path: Path) -> Self:
        kinds = dict.fromkeys(("offsets", "start", "end", "tag"), np.integer)
        return cls(**read_arrays(path, kinds, "a table of tagged words", "run the stage tag_words"))


def write_tags_card(path: Path, table: TagTable, taggers: Mapping[str, str], captions: str) -> None:
    """Write how ``table`` was made.

    Args:
        taggers: the tagger of each language.
        captions: sha256 of ``captions.parquet``.
    """
    counts = {tag: int((table.tag == number).sum()) for number, tag in enumerate(TAGS, start=1)}
    made = {"format": "vitcapr-tags-1", "taggers": dict(taggers), "captions_sha256": captions}
    write_json(path, {**made, "tags": list(TAGS), "counts": counts})


def write_tokenizer(path: Path, tokenizer: "Tokenizer") -> None:
    write_text(path, tokenizer.to_str(pretty=True) + "\n")


def read_tokenizer(path: Path) -> "Tokenizer":
    from tokenizers import Tokenizer

    with reading(path, "a tokenizer", "run the stage train_tokenizer"):
        return Tokenizer.from_buffer(path.read_bytes())
