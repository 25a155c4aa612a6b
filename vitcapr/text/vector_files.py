"""An embedding matrix that starts from published word vectors."""

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.formats.vocabulary import PAD, Vocabulary

_NAMED = 20
"""Maximum number of damaged lines, and of missing words, that a message lists."""


def read_vectors(path: Path, dimension: int, bad_lines: list[int]) -> Iterator[tuple[str, list[float]]]:
    """Yield each word of a word-vector text file with its vector.

    A line is the word, then its numbers, with spaces between.

    GloVe's own format; word2vec's header line (words and dimension) is passed over.

    Args:
        bad_lines: receives the numbers, from 1, of the lines that are not ``dimension`` finite numbers after a word;
            they are passed over.
    """
    if (actual := read_dimension(path)) != dimension:
        raise UserError(
            f"the word vectors have dimension {actual}, not {dimension}",
            where=path,
            remedy="correct word_vectors.dimension or name another file",
        )
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            # The word may contain spaces (glove.840B has ". . ."), so the vector is counted from the end.
            fields = raw.rstrip().split(b" ")
            if number == 1 and _is_header(fields):
                continue
            try:
                word = b" ".join(fields[:-dimension]).decode("utf-8-sig" if number == 1 else "utf-8")
                vector = [float(part) for part in fields[-dimension:]]
            except ValueError:
                word, vector = "", []
            if word and all(map(isfinite, vector)):
                yield word, vector
            else:
                bad_lines.append(number)


def read_dimension(path: Path) -> int:
    """Return the dimension of the vectors of a file, read from its first line."""
    try:
        with path.open("rb") as stream:
            fields = stream.readline().rstrip().split(b" ")
    except OSError as error:
        raise UserError("cannot read the word vectors", where=path, remedy="check word_vectors.path") from error
    if _is_header(fields):
        return int(fields[1])
    for count, part in enumerate(reversed(fields[1:])):
        try:
            float(part)
        except ValueError:
            return count
    return len(fields) - 1


def _is_header(fields: list[bytes]) -> bool:
    """word2vec's first line: how many words, and the dimension."""
    return len(fields) == 2 and fields[0].removeprefix(BOM_UTF8).isdigit() and fields[1].isdigit()


def describe_coverage(coverage: Mapping[str, Any]) -> Iterator[str]:
    """Describe the coverage of a file of word vectors."""
    types, tokens = coverage["types"], coverage["tokens"]
    yield (
        f"word vectors: {types['found']} of {types['of']} words ({types['share']:.1%}), "
        f"{tokens['share']:.1%} of running words"
    )
    for what, items in (
        ("drawn at random", coverage["missing"]),
        ("lines of the file that hold no vector", coverage["file"]["bad_lines"]),
    ):
        count, (named,) = items["count"], (value for key, value in items.items() if key != "count")
        more = f" and {count - len(named)} more" if count > len(named) else ""
        if count:
            yield f"{what}: {', '.join(map(str, named))}{more}"


def initial_embedding(
    vocabulary: Vocabulary, path: Path, dimension: int, seed: int = 0
) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Return an embedding (V, dimension) float32 that starts from a file of vectors, and its coverage.

    The coverage, ``coverage.json``, counts the words of the vocabulary that the file has, without special tokens.

    A word that the file lacks, ``<start>`` and ``<end>`` among them, gets a normal draw with the mean and the
    standard deviation that each dimension has over all vectors of the file; ``<pad>`` is zero. Of a word that
    stands in the file twice the first vector counts. The file is read once and never held in memory.
    """
    matrix = np.random.default_rng(seed).standard_normal((len(vocabulary), dimension))
    covered: set[int] = set()
    bad_lines: list[int] = []
    vectors = 0
    mean, squares = np.zeros(dimension), np.zeros(dimension)
    for word, vector in read_vectors(path, dimension, bad_lines):
        row = np.array(vector)
        # Welford's update: sums of squares would lose the spread of a file whose mean is far from zero.
        vectors += 1
        step = row - mean
        mean += step / vectors
        squares += step * (row - mean)
        number = vocabulary.index.get(word)
        if number is not None and number not in covered:
            covered.add(number)
            matrix[number] = row
    words = range(vocabulary.first_word, len(vocabulary))
    if covered.isdisjoint(words):
        raise UserError(
            "the word vectors have no word of the vocabulary", where=path, remedy="check the file and its language"
        )
    drawn = [number for number in range(len(vocabulary)) if number not in covered]
    matrix[drawn] = mean + np.sqrt(squares / vectors) * matrix[drawn]
    matrix[vocabulary.index[PAD]] = 0
    missing = [vocabulary.words[number] for number in words if number not in covered]
    coverage = {
        "types": _share(len(words) - len(missing), len(words)),
        "tokens": _share(
            sum(vocabulary.counts[number] for number in words if number in covered),
            sum(vocabulary.counts[number] for number in words),
        ),
        "missing": {"count": len(missing), "words": missing[:_NAMED]},
        "file": {"vectors": vectors, "bad_lines": {"count": len(bad_lines), "numbers": bad_lines[:_NAMED]}},
    }
    return matrix.astype(np.float32), coverage


def _share(found: int, of: int) -> dict[str, float]:
    return {"found": found, "of": of, "share": found / of}
