"""Validation recall by hand, and against a full sort."""

import numpy as np
import pytest
import torch

from vitcapr.training import recall
from vitcapr.training.recall import recalls


def by_sorting(images: np.ndarray, captions: np.ndarray, owner: np.ndarray) -> dict[str, float]:
    """Ranks by a full sort; no ties."""
    scores = images @ captions.T
    found = {"i2t": [], "t2i": []}
    for image, row in enumerate(scores):
        order = owner[np.argsort(-row)] == image
        found["i2t"].append(int(np.argmax(order)))
    for caption, column in enumerate(scores.T):
        found["t2i"].append(int(np.flatnonzero(np.argsort(-column) == owner[caption])[0]))
    values = {
        f"validation_{name}_recall_{k}": 100 * float(np.mean(np.array(ranks) < k))
        for name, ranks in found.items()
        for k in (1, 5, 10)
    }
    return {"validation_rsum": sum(values.values()), **values}


def test_against_a_full_sort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "_BLOCK", 7)
    generator = np.random.default_rng(0)
    owner = np.repeat(np.arange(30), generator.integers(1, 4, 30))
    images = generator.normal(size=(30, 6)).astype(np.float32)
    captions = images[owner] + generator.normal(size=(len(owner), 6)).astype(np.float32)
    images, captions = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (images, captions))
    found = recalls(torch.from_numpy(images), torch.from_numpy(captions), torch.from_numpy(owner))
    assert found == pytest.approx(by_sorting(images, captions, owner))


def test_by_hand() -> None:
    """Caption 1 belongs to image 1 and lies on image 0; image 1 still finds caption 2."""
    axes = torch.eye(2)
    found = recalls(axes, axes[[0, 0, 1]], torch.tensor([0, 1, 1]))
    assert found["validation_i2t_recall_1"] == 50.0  # image 0 ties with a wrong caption and is ranked behind it
    assert found["validation_t2i_recall_1"] == pytest.approx(200 / 3)
    assert found["validation_rsum"] == pytest.approx(50 + 200 / 3 + 4 * 100)


def test_collapsed_embeddings_find_nothing() -> None:
    one = torch.ones(1, 4) / 2
    found = recalls(one.repeat(20, 1), one.repeat(40, 1), torch.arange(20).repeat_interleave(2))
    assert found["validation_rsum"] == 0
