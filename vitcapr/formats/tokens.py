"""Captions as word numbers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from vitcapr.formats.containers import read_arrays, write_arrays
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.records import reading
from vitcapr.formats.vocabulary import Vocabulary

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
