"""The files of the texts of fine-tuning: parts of speech, tokenizers, and ``readers.json`` of a trained model.

The twelve tags are the same for all languages: S. Petrov, D. Das, R. McDonald: A Universal Part-of-Speech Tagset. LREC
2012.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from vitcapr.files import write_json, write_text
from vitcapr.formats.containers import read_arrays, write_arrays
from vitcapr.formats.records import read_record, reading

if TYPE_CHECKING:
    from tokenizers import Tokenizer

READERS = "readers.json"
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


def write_tower_readers(path: Path, readers: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the description of the tokenizer of each text tower."""
    write_json(path, readers)


def read_tower_readers(path: Path) -> dict[str, dict[str, Any]]:
    """Return the reader of each tower: ``tokenizer``, ``languages``, ``pad``, ``max_length``, ``segments``."""
    content = read_record(path, _READERS, "a file of tokenizers", "train the fine-tuned dual encoder")
    return {name: reader.model_dump() for name, reader in content.items()}


def _is_tokenizer(text: str) -> str:
    from tokenizers import Tokenizer

    try:
        Tokenizer.from_str(text)
    except Exception as error:  # The library raises nothing more specific.
        raise ValueError(str(error)) from error
    return text


class _Reader(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    tokenizer: Annotated[str, AfterValidator(_is_tokenizer)]
    languages: Annotated[list[str], Field(min_length=1)]
    pad: Annotated[int, Field(ge=0)]
    max_length: Annotated[int, Field(ge=1)]
    segments: bool


_READERS = TypeAdapter(Annotated[dict[str, _Reader], Field(min_length=1)])
