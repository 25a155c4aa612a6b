"""Validation recall by hand."""

import numpy as np
import pytest

from vitcapr.training.recall import recalls


def test_by_hand() -> None:
    """Caption 1 belongs to image 1 and lies on image 0; image 1 still finds caption 2."""
    axes = np.eye(2, dtype=np.float32)
    found = recalls(axes, axes[[0, 0, 1]], np.array([0, 1, 1]))
    assert found["validation_i2t_recall_1"] == 50.0  # image 0 ties with a wrong caption and is ranked behind it
    assert found["validation_t2i_recall_1"] == pytest.approx(200 / 3)
    assert found["validation_rsum"] == pytest.approx(50 + 200 / 3 + 4 * 100)


def test_collapsed_embeddings_find_nothing() -> None:
    one = np.full((1, 4), 0.5, np.float32)
    found = recalls(one.repeat(20, 0), one.repeat(40, 0), np.arange(20).repeat(2))
    assert found["validation_rsum"] == 0
