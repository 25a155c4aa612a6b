"""The losses against loops over single pairs, and by hand where a hand suffices."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vitcapr.training.contrastive import hinge_rank, info_nce, max_hinge, own_captions, sigmoid


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


@given(batches(), st.sampled_from([0.05, 0.2, 1.0]))
@settings(max_examples=40)
def test_info_nce_is_the_naive_one(batch: tuple[Tensor, list[int]], temperature: float) -> None:
    similarity, owner = batch
    found = info_nce(similarity, torch.tensor(owner), torch.tensor(temperature))
    assert float(found) == pytest.approx(naive_info_nce(similarity, owner, temperature), rel=1e-4, abs=1e-6)


@given(batches(), st.sampled_from([0.1, 0.2, 3.0]))
@settings(max_examples=40)
def test_max_hinge_is_the_naive_one(batch: tuple[Tensor, list[int]], margin: float) -> None:
    similarity, owner = batch
    found = max_hinge(similarity, torch.tensor(owner), margin)
    assert float(found) == pytest.approx(naive_max_hinge(similarity, owner, margin), rel=1e-4, abs=1e-6)


def test_by_hand() -> None:
    """Two images, two captions: a true pair one nat above its rival each way."""
    similarity = torch.tensor([[0.5, 0.4], [0.4, 0.5]])
    owner = torch.tensor([0, 1])
    assert float(info_nce(similarity, owner, torch.tensor(0.1))) == pytest.approx(math.log(1 + math.exp(-1)))
    assert float(max_hinge(similarity, owner, 0.2)) == pytest.approx(0.2)
    assert float(max_hinge(similarity, owner, 0.1)) == pytest.approx(0.0, abs=1e-7)


def test_one_caption_an_image_is_the_loss_of_clip() -> None:
    generator = torch.Generator().manual_seed(0)
    similarity = torch.rand(6, 6, generator=generator)
    answers = torch.arange(6)
    clip = sum(torch.nn.functional.cross_entropy(logits / 0.1, answers) for logits in (similarity, similarity.T)) / 2
    torch.testing.assert_close(info_nce(similarity, answers, torch.tensor(0.1)), clip)


@pytest.mark.parametrize("loss", ["info_nce", "max_hinge"])
def test_captions_of_the_same_image_do_not_push_each_other_away(loss: str) -> None:
    """A further caption of image 0 that fits it perfectly changes nothing for the first one's pair."""
    similarity = torch.tensor([[0.3, 0.9, 0.1], [0.2, 0.1, 0.6]], requires_grad=True)
    owner = torch.tensor([0, 0, 1])
    value = info_nce(similarity, owner, torch.tensor(0.1)) if loss == "info_nce" else max_hinge(similarity, owner, 0.5)
    value.backward()
    gradient = similarity.grad
    assert gradient is not None
    assert (gradient[own_captions(owner, 2)] <= 0).all()
    assert (gradient[~own_captions(owner, 2)] >= 0).all()


def test_a_single_image_has_nothing_to_learn_from() -> None:
    similarity = torch.tensor([[0.3, 0.9]], requires_grad=True)
    owner = torch.tensor([0, 0])
    total = info_nce(similarity, owner, torch.tensor(0.1)) + max_hinge(similarity, owner, 0.2)
    total.backward()
    assert float(total.detach()) == 0
    assert similarity.grad is not None
    assert similarity.grad.abs().sum() == 0


@given(batches(), st.floats(-5, 1))
@settings(max_examples=20)
def test_sigmoid_is_the_naive_one(batch: tuple[Tensor, list[int]], bias: float) -> None:
    """One question a pair; every caption of an image is a true one of it."""
    similarity, owner = batch
    total = 0.0
    for image, row in enumerate(similarity.double().tolist()):
        for caption, value in enumerate(row):
            sign = 1 if owner[caption] == image else -1
            total += math.log(1 + math.exp(-sign * (value / 0.2 + bias)))
    found = sigmoid(similarity, torch.tensor(owner), torch.tensor(0.2), torch.tensor(bias))
    assert float(found) == pytest.approx(total / len(owner), rel=1e-4)


def test_hinge_rank_is_equation_1_of_devise() -> None:
    scores = torch.tensor([[0.5, 0.45, 0.2], [0.1, 0.6, 0.55]])
    # Image 0 has caption 0, image 1 captions 1 and 2; only caption 1 comes within 0.1 of a true one, of image 0.
    expected = (0.1 - 0.5 + 0.45) / 3
    assert float(hinge_rank(scores, torch.tensor([0, 1, 1]), 0.1)) == pytest.approx(expected, rel=1e-5)
