"""Captions that find captions of the same picture in another language."""

import os
import subprocess
import sys

import numpy as np
import pytest

from vitcapr.errors import UserError
from vitcapr.metrics.cross_language import cross_ranks


def test_any_caption_of_the_picture_is_a_hit_and_ties_are_pessimistic() -> None:
    queries = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    found = np.array([[0.6, 0.8], [1, 0], [0, 1], [1, 0]], np.float32)
    ranked = cross_ranks(queries, np.array([0, 1, 9]), found, np.array([0, 0, 1, 2]))
    assert ranked.ranks.tolist() == [2, 1]  # of picture 0 the second caption is best, and one of picture 2 equals it
    assert ranked.picture.tolist() == [0, 1]  # picture 9 has no caption in the other language
    assert ranked.pool == 4


TIES = """
import numpy as np
from vitcapr.metrics.cross_language import cross_ranks
for dim in (37, 64, 100):
    row = np.random.default_rng(0).normal(size=(1, dim)).astype(np.float32)
    same = np.repeat(row / np.linalg.norm(row), 101, 0)
    ranks = cross_ranks(same, np.arange(101), same, np.arange(101)).ranks
    assert (ranks == 101).all(), (dim, ranks)
"""


def test_collapsed_captions_rank_last_on_any_processor() -> None:
    """The matrix product of this one scores equal pairs unequally."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Haswell"}
    subprocess.run([sys.executable, "-c", TIES], check=True, env=environment, timeout=120)


@pytest.mark.parametrize("side", ["asking", "found"])
def test_a_caption_that_is_not_a_number_is_no_hit(side: str) -> None:
    good, bad = np.eye(3, dtype=np.float32), np.full((3, 3), np.nan, np.float32)
    queries, found = (bad, good) if side == "asking" else (good, bad)
    with pytest.raises(UserError, match=f"3 embeddings are not finite .*{side} caption"):
        cross_ranks(queries, np.arange(3), found, np.arange(3))
