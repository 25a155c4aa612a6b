"""Exact search against the whole matrix sorted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.retrieval import nearest as module
from vitcapr.retrieval.nearest import nearest


def points(count: int, seed: int = 0, width: int = 3) -> np.ndarray:
    drawn = np.random.default_rng(seed).integers(-2, 3, (count, width)).astype(np.float32)
    drawn[:, 0] += 5
    return drawn


@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 17), st.integers(0, 99), st.integers(1, 3))
def test_blocks_give_what_the_whole_gives(count: int, k: int, block: int, seed: int, every: int) -> None:
    """Small whole numbers: ties abound, and the earlier item must come first across blocks too."""
    queries, stored, rows = points(3, seed + 100), points(count, seed), range(0, count, every)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        scores, numbers = nearest(queries, stored, k, np.array(rows, int) if every > 1 else None)
    whole = queries @ stored.T
    expected = [sorted(rows, key=lambda item, row=row: (-row[item], item))[:k] for row in whole]  # type: ignore[misc]
    assert numbers.tolist() == expected
    np.testing.assert_array_equal(scores, np.take_along_axis(whole, numbers, axis=1))
