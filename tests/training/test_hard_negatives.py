"""The paper's rule case by case, and the queue against a list."""

import math

import pytest
import torch
from torch import Tensor, nn

from vitcapr.models.towers import HeadTower
from vitcapr.training.contrastive import own_captions
from vitcapr.training.hard_negatives import MomentumQueue, mined_loss


def loss_of(similarity: list[list[float]], owner: list[int], rule: str, temperature: float = 0.1) -> float:
    table, index = torch.tensor(similarity), torch.tensor(owner)
    wrong = ~own_captions(index, len(table))
    return float(mined_loss(table, index, table, wrong, torch.tensor(temperature), rule))  # type: ignore[arg-type]


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


def test_without_a_wrong_caption_there_is_no_loss_and_no_nan() -> None:
    similarity = torch.tensor([[0.3, 0.4]], requires_grad=True)
    owner = torch.tensor([0, 0])
    value = mined_loss(similarity, owner, similarity, ~own_captions(owner, 1), torch.tensor(0.1), "second")
    value.backward()
    assert float(value) == 0
    assert similarity.grad is not None
    assert similarity.grad.tolist() == [[0.0, 0.0]]


def test_a_single_wrong_caption_before_the_true_one_leaves_none() -> None:
    """Two captions in all: if the wrong one is first, the second is the true one."""
    assert loss_of([[0.1, 0.4], [0.0, 0.9]], [0, 1], "second") == pytest.approx(surprise(0.9, 0.0) / 2, rel=1e-5)


def queue_of(size: int, momentum: float = 0.75) -> tuple[HeadTower, MomentumQueue]:
    torch.manual_seed(0)
    tower = HeadTower(2, 3, dropout=0.5)
    return tower, MomentumQueue(tower, 2, size, momentum)


def embedded(tower: HeadTower, texts: Tensor) -> Tensor:
    return nn.functional.normalize(nn.functional.linear(texts, tower.head.project.weight, tower.head.project.bias))


def test_the_queue_keeps_the_newest() -> None:
    tower, queue = queue_of(5)
    texts, rows = torch.randn(12, 3), torch.arange(12)
    for part in (slice(0, 3), slice(3, 7), slice(7, 9)):
        queue.push(queue.see(texts[part]), rows[part])
        kept = sorted(zip(queue.rows.tolist(), queue.captions.tolist(), strict=True))
        newest = range(max(0, part.stop - 5), part.stop)
        filled = [(row, vector) for row, vector in kept if row >= 0]
        assert [row for row, _ in filled] == list(newest)
        torch.testing.assert_close(torch.tensor([vector for _, vector in filled]), embedded(tower, texts[newest]))
    queue.push(queue.see(texts), rows)  # more than it holds
    assert sorted(queue.rows.tolist()) == [7, 8, 9, 10, 11]


def test_captions_of_other_images_are_wrong_for_an_image() -> None:
    _, queue = queue_of(4)
    queue.push(queue.see(torch.randn(3, 3)), torch.tensor([7, 2**40 + 1, 9]))
    wrong = queue.wrong_for(torch.tensor([7, 2**40 + 1, 3]))
    assert wrong.tolist() == [[False, True, True, False], [True, False, True, False], [True, True, True, False]]


def test_the_follower_follows_and_is_not_trained() -> None:
    tower, queue = queue_of(4)
    queue.push(queue.see(torch.randn(3, 3)), torch.arange(3))
    before = tower.head.project.weight.detach().clone()
    with torch.no_grad():
        tower.head.project.weight.add_(1.0)
    queue.follow(tower)
    torch.testing.assert_close(queue.follower.state_dict()["head.project.weight"], before + 0.25)
    assert not any(weight.requires_grad for weight in queue.parameters())


def test_with_an_empty_queue_the_follower_copies_the_tower() -> None:
    """Mining may begin after phases without it, which leave the follower at the untrained weights."""
    tower, queue = queue_of(4)
    with torch.no_grad():
        tower.head.project.weight.add_(1.0)
    queue.follow(tower)
    texts = torch.randn(3, 3)
    torch.testing.assert_close(queue.see(texts), embedded(tower, texts))
