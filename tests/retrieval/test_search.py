"""Exact search against the whole matrix sorted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.retrieval import search as module
from vitcapr.retrieval.search import search


def points(count: int, seed: int = 0, width: int = 3) -> np.ndarray:
    drawn = np.random.default_rng(seed).integers(-2, 3, (count, width)).astype(np.float32)
    drawn[:, 0] += 5
    return drawn


def test_by_hand() -> None:
    queries = np.array([[1, 0], [0, 1]], np.float32)
    stored = np.array([[0.6, 0.8], [1, 0], [0.8, 0.6], [0, 1]], np.float32)
    scores, numbers = search(queries, np.arange(4), lambda rows: stored[rows], 3)
    assert numbers.tolist() == [[1, 2, 0], [3, 0, 2]]
    np.testing.assert_array_equal(scores, np.array([[1, 0.8, 0.6], [1, 0.8, 0.6]], np.float32))


@given(count=st.integers(0, 40), k=st.integers(1, 12), block=st.integers(1, 17), seed=st.integers(0, 99))
def test_blocks_give_what_the_whole_gives(count: int, k: int, block: int, seed: int) -> None:
    """Small whole numbers: ties abound, and the earlier item must come first across blocks too."""
    queries, stored = points(3, seed + 100), points(count, seed)
    seen: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        scores, numbers = search(queries, np.arange(count), lambda rows: stored[rows], k, advance=seen.append)
    whole = queries @ stored.T
    expected = [sorted(range(count), key=lambda item, row=row: (-row[item], item))[:k] for row in whole]  # type: ignore[misc]
    assert numbers.tolist() == expected
    np.testing.assert_array_equal(scores, np.take_along_axis(whole, numbers, axis=1))
    assert sum(seen) == count


def test_faiss_finds_the_same() -> None:
    pytest.importorskip("faiss")
    drawn = np.random.default_rng(0).normal(size=(2000, 16)).astype(np.float32)
    stored = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    exact = search(stored[:5], np.arange(2000), lambda rows: stored[rows], 20)
    faiss = search(stored[:5], np.arange(2000), lambda rows: stored[rows], 20, "faiss")
    np.testing.assert_array_equal(faiss[1], exact[1])
    np.testing.assert_allclose(faiss[0], exact[0], atol=1e-6)
