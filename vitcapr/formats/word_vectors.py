"""``vectors.npy``: the initial word embedding of a model; ``coverage.json``: which words have a vector, for people."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.files import write_json
from vitcapr.formats.arrays import read_array, write_array

_WHAT, _REMEDY = "an embedding of words", "run the stage word_vectors"


def write_word_vectors(path: Path, vectors: NDArray[np.float32]) -> None:
    """Write a row for each word of a vocabulary."""
    write_array(path, vectors)


def read_word_vectors(path: Path) -> NDArray[np.float32]:
    """(V, D) float32.

    Raises:
        UserError: the file is missing, is no such array, or a number is not finite.
    """
    vectors = read_array(path, np.float32, _WHAT, _REMEDY)
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        reason = "a number is not finite" if vectors.ndim == 2 else f"its shape is {vectors.shape}"
        raise UserError(f"not {_WHAT}: {reason}", where=path, remedy=f"{_REMEDY} again")
    return vectors


def write_coverage(path: Path, coverage: Mapping[str, Any]) -> None:
    """Write the fields of :meth:`vitcapr.text.word_vectors.Coverage.as_dict`."""
    write_json(path, dict(coverage))
