"""DeViSE: its loss by hand, mean word vectors, and training by its stages."""

import numpy as np
import pytest
import torch

from vitcapr.features.batches.memory import MemoryArray, MemoryFeatures
from vitcapr.training.devise import hinge_rank_loss


def test_the_hinge_rank_loss_is_equation_1() -> None:
    scores = torch.tensor([[0.5, 0.45, 0.2], [0.1, 0.6, 0.55]])
    # Image 0 has caption 0, image 1 captions 1 and 2; margin 0.1.
    expected = ((0.1 - 0.5 + 0.45) + 0 + 0 + (0) + 0) / 3
    assert float(hinge_rank_loss(scores, torch.tensor([0, 1, 1]), 0.1)) == pytest.approx(expected, rel=1e-5)


def test_a_linear_relation_is_learned() -> None:
    from vitcapr.features.batches.pairs import FeatureTexts
    from vitcapr.models.devise import Devise
    from vitcapr.training.devise import DeviseTask

    generator = np.random.default_rng(0)
    features = generator.normal(size=(40, 6)).astype(np.float32)
    texts = features @ generator.normal(size=(6, 4)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)

    torch.manual_seed(0)
    task = DeviseTask(
        Devise(6, 4),
        MemoryFeatures(cls=MemoryArray(features)),
        FeatureTexts(MemoryArray(texts), np.arange(40), np.arange(40)),
        train=np.arange(30),
        validation=np.arange(30, 40),
        batch_images=10,
        captions_per_image=1,
        margin=0.1,
        seed=0,
        device=torch.device("cpu"),
    )
    optimizer = torch.optim.Adam(task.model.parameters(), lr=0.02)
    with torch.inference_mode():
        before = task.validate()
    for epoch in range(1, 31):
        for batch in task.batches(0, epoch, 0):
            loss, _ = task.loss(batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.inference_mode():
        after = task.validate()
    assert after["validation_loss"] < 0.5 * before["validation_loss"]
    assert after["validation_rsum"] > before["validation_rsum"]
