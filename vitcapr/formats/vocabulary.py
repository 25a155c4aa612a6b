"""``vocabulary.json``, the words or pieces of words of a captioner, and ``vectors.npy``, their embedding."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.files import canonical_json, sha256_bytes, write_json
from vitcapr.formats.containers import read_array, write_array
from vitcapr.formats.records import read_format, reading

FORMAT = "vitcapr-vocabulary-1"
PAD, START, END, UNKNOWN = "<pad>", "<start>", "<end>", "<unk>"
SPECIALS = (PAD, START, END)
_REMEDY = "run the vocabulary stage"


@dataclass(frozen=True)
class Vocabulary:
    """Words and their numbers.

    Attributes:
        words: the word of each number: ``<pad> <start> <end>``, ``<unk>`` where rare words are mapped to it,
            then the words by falling count and, among equals, alphabetically (by code point).
        counts: how often each was seen where words were counted; for ``<unk>`` the occurrences of rare words.
        rare: how many words were seen so often, for the counts of the words that were left out.
        signature: one line for the protocol of a score, such as ``vocab:train,>=5,3012``: where words were
            counted, the threshold, and the number of entries, specials included.
        recipe: the settings it was made with, as they are kept in the file.
        rows: of pieces, the row of each in the embedding of its language model; empty for words. A piece that begins a
            word begins with a space.
    """

    words: tuple[str, ...]
    counts: tuple[int, ...]
    signature: str
    rare: Mapping[int, int] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[int, ...] = ()
    pad, start, end = range(len(SPECIALS))

    def __post_init__(self) -> None:
        if self.words[: len(SPECIALS)] != SPECIALS:
            raise ValueError(f"the first words must be {' '.join(SPECIALS)}")
        if len(self.counts) != len(self.words):
            raise ValueError(f"{len(self.counts)} counts for {len(self.words)} words")
        if len(set(self.words)) != len(self.words):
            raise ValueError("a word occurs twice")
        if self.rows and (len(self.rows) != len(self.words) or min(self.rows) < 0):
            raise ValueError("the rows are not those of the pieces")

    @classmethod
    def build(
        cls,
        words: Mapping[str, int] | Iterable[str],
        *,
        min_count: int,
        unknown: bool = True,
        splits: Sequence[str] = ("train",),
        recipe: Mapping[str, Any] | None = None,
    ) -> Self:
        """Keep the frequent words.

        Args:
            words: how often each word occurs in the captions that are counted; or all words of these captions.
            min_count: kept are words seen at least so often.
            unknown: add ``<unk>`` for the words that are not kept.
            splits: where the captions come from, for the signature.

        Raises:
            UserError: no word is frequent enough, or a caption contains one of the specials.
        """
        seen = Counter(words)
        if clash := sorted({*SPECIALS, UNKNOWN} & seen.keys()):
            raise UserError(f"a caption has the word {clash[0]}, which has a meaning here", remedy="replace it there")
        kept = sorted(
            (word for word, count in seen.items() if count >= min_count), key=lambda word: (-seen[word], word)
        )
        if not kept:
            most = max(seen.values(), default=0)
            raise UserError(
                f"no word is seen {min_count} times, the most frequent one {most} times",
                remedy="lower text.vocabulary.min_count or count words in more captions",
            )
        rare = Counter(count for count in seen.values() if count < min_count)
        specials = (*SPECIALS, UNKNOWN) if unknown else SPECIALS
        special_counts = [0] * len(SPECIALS) + [sum(n * words for n, words in rare.items())] * unknown
        return cls(
            words=(*specials, *kept),
            counts=(*special_counts, *(seen[word] for word in kept)),
            signature=f"vocab:{'+'.join(splits)},>={min_count},{len(specials) + len(kept)}",
            rare=dict(sorted(rare.items())),
            recipe=dict(recipe or {}),
        )

    @classmethod
    def read(cls, path: Path) -> Self:
        content = read_format(path, FORMAT, "a vocabulary", _REMEDY)
        with reading(path, "a vocabulary", _REMEDY):
            if content.pop("sha256") != _digest(content):
                raise ValueError("damaged: its content has changed since it was written")
            rare = {int(count): words for count, words in content["rare"].items()}
            words, counts, rows = (tuple(content.get(key, ())) for key in ("words", "counts", "rows"))
            return cls(words, counts, content["signature"], rare, content["recipe"], rows)

    def write(self, path: Path) -> None:
        content = self._content()
        write_json(path, {**content, "sha256": _digest(content)})

    def _content(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "words": list(self.words),
            "counts": list(self.counts),
            "rare": {str(count): words for count, words in self.rare.items()},
            "recipe": dict(self.recipe),
            "signature": self.signature,
            **({"rows": list(self.rows)} if self.rows else {}),
        }

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @property
    def unknown(self) -> int | None:
        """The number of ``<unk>``; None if rare words are left out of captions."""
        return self.index.get(UNKNOWN)

    @property
    def first_word(self) -> int:
        """The number of the first entry that is not a special."""
        return len(SPECIALS) + (self.unknown is not None)

    @property
    def token_coverage(self) -> float:
        """The share of the running words, where words were counted, that the vocabulary has."""
        known = sum(self.counts[self.first_word :])
        return known / (known + sum(count * words for count, words in self.rare.items()))

    def special_tokens(self) -> dict[str, Any]:
        """Return the arguments of decoding: ``start``, ``end``, ``pad`` and ``forbidden``, which names ``<unk>``."""
        forbidden = [] if self.unknown is None else [self.unknown]
        return {"start": self.start, "end": self.end, "pad": self.pad, "forbidden": forbidden}

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the numbers of a caption's words, ``<start>`` before and ``<end>`` after them.

        Words it does not know become ``<unk>`` or, in a vocabulary without it, are left out.
        """
        numbers = (self.index.get(token, self.unknown) for token in tokens)
        return [self.start, *(number for number in numbers if number is not None), self.end]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the words up to the first ``<end>``; ``<pad>`` and ``<start>`` are left out."""
        before_end = takewhile(lambda number: number != self.end, ids)
        caption = [number for number in before_end if number not in (self.pad, self.start)]
        return ["".join(self.words[n] for n in caption[span]).removeprefix(" ") for span in self.spans(caption)]

    def spans(self, ids: Sequence[int]) -> list[slice]:
        """Return the places of each word in a caption: one for a word, one or more for the pieces of a word."""
        begins = [n for n, number in enumerate(ids) if n == 0 or not self.rows or self.words[number].startswith(" ")]
        return [slice(*ends) for ends in pairwise([*begins, len(ids)])]


def _digest(content: Mapping[str, Any]) -> str:
    return sha256_bytes(canonical_json(content).encode())


def write_word_vectors(path: Path, vectors: NDArray[np.float32]) -> None:
    """Write a row for each word of a vocabulary."""
    write_array(path, vectors)


def read_word_vectors(path: Path) -> NDArray[np.float32]:
    """(V, D) float32."""
    what, remedy = "an embedding of words", "run the stage word_vectors"
    vectors = read_array(path, np.float32, what, remedy)
    with reading(path, what, remedy):
        if vectors.ndim != 2:
            raise ValueError(f"its shape is {vectors.shape}")
        return vectors
