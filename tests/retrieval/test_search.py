"""Exact search against the whole matrix sorted."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.retrieval import search as module
from vitcapr.retrieval.search import nearest, nearest_by_faiss, write_faiss


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


def test_faiss_finds_nearly_the_same(tmp_path: Path) -> None:
    """Of the 20 nearest of 2,000 points."""
    pytest.importorskip("faiss")
    points = np.random.default_rng(0).normal(size=(2000, 16)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    write_faiss(tmp_path / "images.faiss", points)
    exact, faiss = nearest(points[:5], points, 20), nearest_by_faiss(tmp_path / "images.faiss", points[:5], 20)
    same = [len(set(a) & set(b)) for a, b in zip(faiss[1].tolist(), exact[1].tolist(), strict=True)]
    assert sum(same) >= 95
    np.testing.assert_allclose(faiss[0][:, 0], exact[0][:, 0], atol=1e-6)
