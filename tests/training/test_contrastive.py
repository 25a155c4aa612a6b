"""The losses against loops over single pairs and the written equations, and by hand where a hand suffices."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax
from sklearn.preprocessing import normalize
from torch import Tensor

from vitcapr.training.contrastive import (
    hinge_rank,
    info_nce,
    least_shift,
    max_hinge,
    mined_loss,
    own_captions,
    pooled_loss,
    sigmoid,
    structure_loss,
)


def naive_info_nce(similarity: Tensor, owner: list[int], temperature: float) -> float:
    """One softmax a pair and direction, over the things it is compared with."""
    logits = (similarity.double() / temperature).tolist()
    images, captions = len(logits), len(owner)
    to_caption = to_image = 0.0
    for caption, image in enumerate(owner):
        rivals = [logits[image][other] for other in range(captions) if owner[other] != image]
        to_caption -= math.log(math.exp(logits[image][caption]) / sum(map(math.exp, [logits[image][caption], *rivals])))
        column = [logits[other][caption] for other in range(images)]
        to_image -= math.log(math.exp(logits[image][caption]) / sum(map(math.exp, column)))
    return (to_caption + to_image) / (2 * captions)


def naive_max_hinge(similarity: Tensor, owner: list[int], margin: float) -> float:
    total = 0.0
    for caption, image in enumerate(owner):
        true = float(similarity[image, caption])
        captions = [float(similarity[image, other]) for other in range(len(owner)) if owner[other] != image]
        images = [float(similarity[other, caption]) for other in range(len(similarity)) if other != image]
        total += sum(max(0.0, margin - true + max(rivals)) for rivals in (captions, images) if rivals)
    return total / len(owner)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, list[int]]:
    owner = [image for image, count in enumerate(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
             for _ in range(count)]  # fmt: skip
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    return torch.rand(owner[-1] + 1, len(owner), generator=generator) * 2 - 1, owner


def naive_sigmoid(similarity: Tensor, owner: list[int], bias: float) -> float:
    """One question a pair, at a temperature of 0.2; every caption of an image is a true one of it."""
    total = 0.0
    for image, row in enumerate(similarity.double().tolist()):
        for caption, value in enumerate(row):
            sign = 1 if owner[caption] == image else -1
            total += math.log(1 + math.exp(-sign * (value / 0.2 + bias)))
    return total / len(owner)


@given(batches(), st.sampled_from([0.05, 0.2, 1.0]), st.sampled_from([0.1, 0.2, 3.0]), st.floats(-5, 1))
@settings(max_examples=40)
def test_losses_are_the_naive_ones(
    batch: tuple[Tensor, list[int]], temperature: float, margin: float, bias: float
) -> None:
    similarity, owner = batch
    index = torch.tensor(owner)
    for found, expected in (
        (info_nce(similarity, index, torch.tensor(temperature)), naive_info_nce(similarity, owner, temperature)),
        (max_hinge(similarity, index, margin), naive_max_hinge(similarity, owner, margin)),
        (sigmoid(similarity, index, torch.tensor(0.2), torch.tensor(bias)), naive_sigmoid(similarity, owner, bias)),
    ):
        assert float(found) == pytest.approx(expected, rel=1e-4, abs=1e-6)


TAU = torch.tensor(0.1)


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        (info_nce, (TAU,)),
        (max_hinge, (0.2,)),
        (mined_loss, (TAU, "second")),
        (pooled_loss, (TAU,)),
    ],
)
def test_a_single_image_has_nothing_to_learn_from(loss: Callable[..., Tensor], options: tuple[Any, ...]) -> None:
    """The last batch of an epoch may hold one."""
    similarity = torch.tensor([[0.9, -0.2]], requires_grad=True)
    value = loss(similarity, torch.tensor([0, 0]), *options)
    value.backward()
    assert float(value) == 0
    assert similarity.grad.tolist() == [[0.0, 0.0]]


def test_hinge_rank_is_equation_1_of_devise() -> None:
    scores = torch.tensor([[0.5, 0.45, 0.2], [0.1, 0.6, 0.55]])
    # Image 0 has caption 0, image 1 captions 1 and 2; only caption 1 comes within 0.1 of a true one, of image 0.
    expected = (0.1 - 0.5 + 0.45) / 3
    assert float(hinge_rank(scores, torch.tensor([0, 1, 1]), 0.1)) == pytest.approx(expected, rel=1e-5)


def test_pooled_is_equation_4_of_peng_without_negatives_of_one_image() -> None:
    similarity = torch.tensor([[0.9, 0.8, 0.1], [-0.2, 0.3, 0.5]])
    true = sum(math.exp(10 * value) for value in (0.9, 0.8, 0.5))
    wrong = sum(math.exp(10 * value) for value in (0.1, -0.2, 0.3))
    index = torch.tensor([0, 0, 1])
    rho = least_shift(own_captions(index, 2), float(TAU))
    assert float(pooled_loss(similarity, index, TAU)) == pytest.approx(rho - math.log(true / wrong), rel=1e-5)


def test_the_least_shift_makes_the_best_batch_zero() -> None:
    best = 2 * torch.eye(20) - 1
    index = torch.arange(20)
    assert float(pooled_loss(best, index, TAU)) == pytest.approx(0, abs=1e-4)
    assert least_shift(own_captions(index, 20), float(TAU)) == pytest.approx(20 - math.log(19), rel=1e-5)


ROWS = 5
TAU_OF_STRUCTURE = torch.tensor(0.3)


def rows(width: int, seed: int) -> torch.Tensor:
    return torch.randn(ROWS, width, generator=torch.Generator().manual_seed(seed))


def test_structure_is_the_mean_of_divergences() -> None:
    def neighbours(given: np.ndarray) -> np.ndarray:
        unit = normalize(given)
        centred = unit - unit.mean(axis=0)
        return softmax(centred @ centred.T / 0.3, axis=1)

    x, a = rows(6, 0), rows(4, 1)
    p, q = neighbours(x.numpy()), neighbours(a.numpy())
    expected = np.mean(jensenshannon(p, q, axis=1) ** 2)
    temperature = TAU_OF_STRUCTURE.clone().requires_grad_()
    loss = structure_loss(x, a.requires_grad_(), temperature)
    assert float(loss) == pytest.approx(expected, rel=1e-4)
    loss.backward()
    assert temperature.grad is None
    assert torch.isfinite(a.grad).all()


def loss_of(similarity: list[list[float]], owner: list[int], rule: str, temperature: float = 0.1) -> float:
    table, index = torch.tensor(similarity), torch.tensor(owner)
    return float(mined_loss(table, index, torch.tensor(temperature), rule))  # type: ignore[arg-type]


def surprise(true: float, hard: float, temperature: float = 0.1) -> float:
    return math.log(1 + math.exp((hard - true) / temperature))


def test_the_second_of_the_two_most_similar() -> None:
    """The true caption first: the best wrong one. Third or worse: the second best wrong one. Second: none."""
    rows = [
        [0.9, 0.8, 0.1, 0.0],  # true caption 0 is first: 0.8
        [0.7, 0.5, 0.6, 0.1],  # true caption 1 is third: 0.6
        [0.1, 0.6, 0.5, 0.2],  # true caption 2 is second: none
        [0.3, 0.2, 0.4, 0.3],  # true caption 3 ties with 0.3: counted behind 0.4, level with 0.3, so it is second: none
    ]
    expected = surprise(0.9, 0.8) + surprise(0.5, 0.6)
    assert loss_of(rows, [0, 1, 2, 3], "second") == pytest.approx(expected / 4, rel=1e-5)
    hardest = surprise(0.9, 0.8) + surprise(0.5, 0.7) + surprise(0.5, 0.6) + surprise(0.3, 0.4)
    assert loss_of(rows, [0, 1, 2, 3], "hardest") == pytest.approx(hardest / 4, rel=1e-5)


def test_other_captions_of_the_image_are_left_out() -> None:
    rows = [[0.2, 0.9, 0.1], [0.0, 0.0, 0.5]]
    expected = surprise(0.2, 0.1) + surprise(0.9, 0.1) + surprise(0.5, 0.0)
    for rule in ("second", "hardest"):
        assert loss_of(rows, [0, 0, 1], rule) == pytest.approx(expected / 3, rel=1e-5)
    # Two captions in all: if the wrong one is first, the second is the true one.
    assert loss_of([[0.1, 0.4], [0.0, 0.9]], [0, 1], "second") == pytest.approx(surprise(0.9, 0.0) / 2, rel=1e-5)
