"""Ranks of true matches against the matrix of all scores, written out."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitcapr.errors import UserError
from vitcapr.formats.scores import Ranks
from vitcapr.metrics import ranks as module
from vitcapr.metrics.ranks import rank_matches


def oracle(images: np.ndarray, captions: np.ndarray, owner: np.ndarray) -> Ranks:
    """All scores at once, one query at a time, as the definitions read."""
    scores = (images.astype(np.float64) @ captions.astype(np.float64).T).astype(np.float32)
    i2t, precision = [], []
    for row, of_row in enumerate(scores):
        own, others = np.sort(of_row[owner == row])[::-1], of_row[owner != row]
        places = [place + np.count_nonzero(others >= score) for place, score in enumerate(own, start=1)]
        i2t.append(places[0])
        precision.append(sum(k / place for k, place in enumerate(places, start=1) if place <= len(own)) / len(own))
    t2i = []
    for column, row in enumerate(owner):
        others = np.delete(scores[:, column], row)
        t2i.append(1 + np.count_nonzero(others >= scores[row, column]))
    return Ranks(np.array(i2t, np.int32), np.array(t2i, np.int32), np.array(precision))


def assert_same(found: Ranks, expected: Ranks) -> None:
    np.testing.assert_array_equal(found.i2t, expected.i2t)
    np.testing.assert_array_equal(found.t2i, expected.t2i)
    np.testing.assert_allclose(found.i2t_precision, expected.i2t_precision, rtol=1e-12)
    assert found.i2t.dtype == found.t2i.dtype == np.int32


def embeddings(images: int, dim: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images and one to five captions of each near them, of unit length."""
    random = np.random.default_rng(seed)
    owner = np.repeat(np.arange(images), random.integers(1, 6, images))
    left = random.normal(size=(images, dim))
    right = left[owner] + noise * random.normal(size=(len(owner), dim))
    left, right = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (left, right))
    return left.astype(np.float32), right.astype(np.float32), owner


@settings(max_examples=60)
@given(data=st.data())
def test_many_ties_in_blocks_of_any_size(data: st.DataObject) -> None:
    """Small integers give many equal scores; a tenth of them does not add up exactly in float32."""
    counts = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=12))
    owner = np.repeat(np.arange(len(counts)), counts)
    dim = data.draw(st.integers(1, 4))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scale = data.draw(st.sampled_from([1, 0.1]))
    images = (scale * random.integers(-2, 3, (len(counts), dim))).astype(np.float32)
    captions = (scale * random.integers(-2, 3, (len(owner), dim))).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_ROWS", data.draw(st.integers(1, 40)))
        patch.setattr(module, "_COLUMNS", data.draw(st.integers(1, 40)))
        assert_same(rank_matches(images, captions, owner), oracle(images, captions, owner))


TIES = """
import numpy as np
from vitcapr.metrics.ranks import rank_matches
for dim in (5, 64, 300):
    rows = np.random.default_rng(0).normal(size=(100, dim)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    copied = np.tile(rows, (4, 1))
    found = rank_matches(copied, copied, np.arange(len(copied)))
    assert (found.i2t == 4).all(), found.i2t
    assert (found.t2i == 4).all(), found.t2i

    one = np.repeat(rows[:1], 297, 0)
    found = rank_matches(one[:99], one, np.repeat(np.arange(99), 3))
    assert (found.i2t == 1 + 297 - 3).all(), found.i2t
    assert (found.t2i == 99).all(), found.t2i
    assert not found.i2t_precision.any()
"""


def test_copies_and_collapsed_embeddings_all_tie() -> None:
    """Wherever they stand: also with the matrix product of other processors, which adds in another order."""
    exec(TIES, {})
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Haswell"}
    subprocess.run([sys.executable, "-c", TIES], check=True, env=environment, timeout=120)


@pytest.mark.parametrize(("side", "row"), [("image", 7), ("caption", 11)])
def test_an_embedding_that_is_not_a_number_is_named(side: str, row: int) -> None:
    images, captions, owner = embeddings(20, 4, 1)
    (images if side == "image" else captions)[row, 2] = np.nan
    with pytest.raises(UserError, match=rf"1 embeddings are not finite \(row {row} of the {side} embeddings\)"):
        rank_matches(images, captions, owner)


def test_what_does_not_fit_is_refused() -> None:
    images, captions, owner = embeddings(20, 4, 1)
    with pytest.raises(ValueError, match="not grouped"):
        rank_matches(images, captions, owner[::-1])
    with pytest.raises(ValueError, match="but the images of"):
        rank_matches(images, captions[:-1], owner)
    with pytest.raises(ValueError, match="image embeddings of"):
        rank_matches(images[:, :3], captions, owner)
    with pytest.raises(ValueError, match="captions of images 0 to 19"):
        rank_matches(images[:-1], captions, owner)
    with pytest.raises(UserError, match=r"an image has no caption \(row 20 of the image"):
        rank_matches(np.concatenate([images, images[:1]]), captions, owner)
    long = np.full((1, 2), 2e19, np.float32)
    with pytest.raises(UserError, match="overflow float32"):
        rank_matches(long, long, np.array([0]))
