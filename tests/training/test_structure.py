"""The STRUCTURE loss against loops over single rows, and as a part of a retriever's loss."""

import math

import numpy as np
import pytest
import torch

from vitcapr.batches.pairs import FeatureTexts
from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.config.retriever import RetrieverPhaseConfig
from vitcapr.models.dual_encoder import build_dual_encoder
from vitcapr.training.contrastive import structure_loss
from vitcapr.training.retriever_task import RetrieverTask

ROWS = 5
TEMPERATURE = torch.tensor(0.3)


def rows(width: int, seed: int) -> torch.Tensor:
    return torch.randn(ROWS, width, generator=torch.Generator().manual_seed(seed))


def neighbours(given: torch.Tensor) -> list[list[float]]:
    unit = [[value / math.hypot(*row) for value in row] for row in given.tolist()]
    mean = [sum(column) / ROWS for column in zip(*unit, strict=True)]
    centred = [[value - middle for value, middle in zip(row, mean, strict=True)] for row in unit]
    near = [
        [math.exp(sum(a * b for a, b in zip(one, other, strict=True)) / 0.3) for other in centred] for one in centred
    ]
    return [[value / sum(row) for value in row] for row in near]


def divergence(p: list[list[float]], q: list[list[float]]) -> float:
    total = 0.0
    for one, other in zip(p, q, strict=True):
        for a, b in zip(one, other, strict=True):
            mean = (a + b) / 2
            total += (a * math.log(a / mean) + b * math.log(b / mean)) / 2
    return total / ROWS


@pytest.mark.parametrize("levels", [1, 3])
def test_it_is_the_mean_over_levels_of_divergences(levels: int) -> None:
    x, a = rows(6, 0), rows(4, 1)
    p, q = neighbours(x), neighbours(a)
    expected = 0.0
    first, second = np.eye(ROWS), np.eye(ROWS)
    for level in range(1, levels + 1):
        first, second = first @ np.array(p), second @ np.array(q)
        expected += divergence(first.tolist(), second.tolist()) / level
    assert float(structure_loss(x, a, TEMPERATURE, levels)) == pytest.approx(expected / levels, rel=1e-4)


def test_a_turned_and_stretched_copy_keeps_the_structure() -> None:
    x = rows(4, 0)
    turn = torch.linalg.qr(rows(4, 2)[:4])[0]
    assert float(structure_loss(x, 3 * x @ turn, TEMPERATURE, 2)) == pytest.approx(0, abs=1e-6)
    assert float(structure_loss(x, rows(4, 1), TEMPERATURE, 2)) > 0.01


def test_the_temperature_learns_nothing_from_it() -> None:
    temperature, a = TEMPERATURE.clone().requires_grad_(), rows(4, 1).requires_grad_()
    structure_loss(rows(6, 0), a, temperature, 2).backward()
    assert temperature.grad is None
    assert a.grad is not None
    assert torch.isfinite(a.grad).all()


def test_a_retriever_adds_it_for_images_and_captions() -> None:
    draw = np.random.default_rng(0)
    images, texts = (draw.normal(size=(n, 6)).astype(np.float16) for n in (8, 16))
    patches = draw.normal(size=(8, 3, 6)).astype(np.float32)
    torch.manual_seed(0)
    tower = {"feature_dim": 6, "pool": "cls_mean"}
    text = {"kind": "features", "feature_dim": 6}
    learnt = {"embedding_dim": 4, "temperature": 0.3, "learn_temperature": True}
    encoder = build_dual_encoder({**learnt, "image": tower, "text": text}).eval()

    def loss(**phase: float) -> torch.Tensor:
        task = RetrieverTask(
            encoder,
            [MemoryFeatures(cls=MemoryArray(images), patches=MemoryArray(patches))],
            FeatureTexts(MemoryArray(texts), np.arange(16), np.repeat(np.arange(8), 2)),
            train=np.arange(8),
            validation=np.arange(8),
            phases=[RetrieverPhaseConfig(epochs=1, batch_images=8, **phase)],  # type: ignore[arg-type]
            seed=0,
            device=torch.device("cpu"),
        )
        return task.loss(next(task.batches(0, 1, 0)))[0]

    frozen = torch.from_numpy(np.concatenate([images, patches.mean(1)], axis=1))
    captions = torch.from_numpy(texts).float()
    stored = {"cls": torch.from_numpy(images), "patches": torch.from_numpy(patches)}
    parts = (
        structure_loss(frozen, encoder.embed_images(stored), encoder.temperature(), 2),
        structure_loss(captions, encoder.embed_texts(captions), encoder.temperature(), 2),
    )
    added = loss(structure=5.0, structure_levels=2) - loss()
    torch.testing.assert_close(added, 2.5 * sum(parts), rtol=1e-4, atol=1e-5)
