"""An embedding matrix that starts from published word vectors."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.formats.vocabulary import PAD, Vocabulary

_NAMED = 20
"""Maximum number of damaged lines, and of missing words, that a message lists."""


@dataclass
class VectorFile:
    """A word-vector text file, a line a word: the word, then its numbers, spaces between them.

    GloVe's own format; word2vec's header line (words and dimension) is passed over. Iterating reads the
    file once, line by line, and yields each word with its vector. Lines that cannot be read as ``dimension``
    finite numbers after a word are passed over and remembered.

    Attributes:
        bad_lines: the numbers of the damaged lines met so far, from 1.
    """

    path: Path
    dimension: int
    bad_lines: list[int] = field(default_factory=list)

    def __iter__(self) -> Iterator[tuple[str, list[float]]]:
        """Raises:
        UserError: the file is missing, or its first vector has another dimension.
        """
        self.bad_lines = []
        checked = False
        try:
            stream = self.path.open("rb")
        except OSError as error:
            raise UserError(
                "cannot read the word vectors", where=self.path, remedy="check word_vectors.path"
            ) from error
        with stream:
            for number, raw in enumerate(stream, start=1):
                # The word may contain spaces (glove.840B has ". . ."), so the vector is counted from the end.
                fields = raw.rstrip().split(b" ")
                if number == 1 and _is_header(fields):
                    self._check_dimension(int(fields[1]))
                    checked = True
                    continue
                if not checked:
                    self._check_dimension(_trailing_numbers(fields))
                    checked = True
                parsed = self._parse(fields)
                if parsed is None:
                    self.bad_lines.append(number)
                else:
                    yield parsed

    def _check_dimension(self, found: int) -> None:
        if found != self.dimension:
            raise UserError(
                f"the word vectors have dimension {found}, not {self.dimension}",
                where=self.path,
                remedy="correct word_vectors.dimension or name another file",
            )

    def _parse(self, fields: list[bytes]) -> tuple[str, list[float]] | None:
        if len(fields) <= self.dimension:
            return None
        try:
            word = b" ".join(fields[: -self.dimension]).decode("utf-8")
            vector = [float(part) for part in fields[-self.dimension :]]
        except ValueError:
            return None
        return (word, vector) if word and all(map(isfinite, vector)) else None


def dimension_of(path: Path) -> int:
    """The dimension of the vectors of a file, read from its first line."""
    with path.open("rb") as stream:
        fields = stream.readline().rstrip().split(b" ")
    return int(fields[1]) if _is_header(fields) else _trailing_numbers(fields)


def _is_header(fields: list[bytes]) -> bool:
    """word2vec's first line: how many words, and the dimension."""
    return len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit()


def _trailing_numbers(fields: list[bytes]) -> int:
    """How many fields at the end of the line, the first one aside, are numbers."""
    for count, part in enumerate(reversed(fields[1:])):
        try:
            float(part)
        except ValueError:
            return count
    return len(fields) - 1


@dataclass(frozen=True)
class Coverage:
    """How much of a vocabulary, specials aside, a word-vector file has.

    Attributes:
        found: words of the vocabulary in the file.
        words: words of the vocabulary.
        found_tokens: occurrences of the found words where the vocabulary counted.
        tokens: occurrences of all its words.
        missing: the words that the file lacks, the most frequent first.
        vectors: lines of the file that hold a vector.
        bad_lines: the numbers of those that do not, from 1.
    """

    found: int
    words: int
    found_tokens: int
    tokens: int
    missing: tuple[str, ...]
    vectors: int
    bad_lines: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "types": {"found": self.found, "of": self.words, "share": self.found / self.words},
            "tokens": {"found": self.found_tokens, "of": self.tokens, "share": self.found_tokens / self.tokens},
            "missing": {"count": len(self.missing), "words": list(self.missing[:_NAMED])},
            "file": {
                "vectors": self.vectors,
                "bad_lines": {"count": len(self.bad_lines), "numbers": list(self.bad_lines[:_NAMED])},
            },
        }

    def lines(self) -> list[str]:
        """The same for a person to read."""
        text = [
            f"word vectors: {self.found} of {self.words} words ({self.found / self.words:.1%}), "
            f"{self.found_tokens / self.tokens:.1%} of running words"
        ]
        if self.missing:
            text.append(f"drawn at random: {_some(self.missing)}")
        if self.bad_lines:
            text.append(f"lines of the file that hold no vector: {_some(self.bad_lines)}")
        return text


def _some(items: tuple[str, ...] | tuple[int, ...]) -> str:
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(str(item) for item in items[:_NAMED]) + more


def initial_embedding(vocabulary: Vocabulary, file: VectorFile, seed: int) -> tuple[NDArray[np.float32], Coverage]:
    """An embedding for ``vocabulary``: the file's vectors where it has the word.

    A word that the file lacks, ``<start>`` and ``<end>`` among them, gets a normal draw with the mean and the
    standard deviation that each dimension has over all vectors of the file; ``<pad>`` is zero. Of a word that
    stands in the file twice the first vector counts. The file is read once and never held in memory.

    Returns:
        The matrix (V, dimension) float32, and how many words were found.

    Raises:
        UserError: the file cannot be read, has another dimension, or has no word of the vocabulary.
    """
    matrix = np.random.default_rng(seed).standard_normal((len(vocabulary), file.dimension))
    found: set[int] = set()
    vectors = 0
    mean, squares = np.zeros(file.dimension), np.zeros(file.dimension)
    for word, vector in file:
        row = np.array(vector)
        # Welford's update: sums of squares would lose the spread of a file whose mean is far from zero.
        vectors += 1
        step = row - mean
        mean += step / vectors
        squares += step * (row - mean)
        number = vocabulary.index.get(word)
        if number is not None and number not in found:
            found.add(number)
            matrix[number] = row
    words = range(vocabulary.first_word, len(vocabulary))
    if found.isdisjoint(words):
        raise UserError(
            "the word vectors have no word of the vocabulary", where=file.path, remedy="check the file and its language"
        )
    drawn = [number for number in range(len(vocabulary)) if number not in found]
    matrix[drawn] = mean + np.sqrt(squares / vectors) * matrix[drawn]
    matrix[vocabulary.index[PAD]] = 0
    coverage = Coverage(
        found=len(found.intersection(words)),
        words=len(words),
        found_tokens=sum(vocabulary.counts[number] for number in words if number in found),
        tokens=sum(vocabulary.counts[number] for number in words),
        missing=tuple(vocabulary.words[number] for number in words if number not in found),
        vectors=vectors,
        bad_lines=tuple(file.bad_lines),
    )
    return matrix.astype(np.float32), coverage
