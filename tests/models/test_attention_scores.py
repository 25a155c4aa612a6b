"""The scores of patches against the formulas written out."""

from typing import get_args

import pytest
import torch
from torch import Tensor

from vitcapr.models import attention_scores
from vitcapr.models.attention_scores import Scoring, patch_scores


def written_out(patches: Tensor, words: Tensor, weight: Tensor, scoring: Scoring) -> Tensor:
    """Equation 2 of ViTCap-R, or one of its other forms, for every pair at once."""
    if scoring == "bilinear":
        return (patches[:, None] * words[:, :, None]) @ weight
    nonlinear = torch.tanh if scoring == "tanh" else torch.relu
    return nonlinear(patches[:, None] + words[:, :, None]) @ weight


def inputs(images: int, words: int, patches: int, units: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = [(images, patches, units), (images, words, units), (units,)]
    tensors = [torch.randn(*shape, generator=generator) for shape in shapes]
    return tensors[0].requires_grad_(), tensors[1].requires_grad_(), tensors[2].requires_grad_()


@pytest.mark.parametrize("scoring", get_args(Scoring))
@pytest.mark.parametrize("words", [1, 3, 4])
def test_scores_and_gradients_equal_the_formula(scoring: Scoring, words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``words`` are computed together."""
    monkeypatch.setattr(attention_scores, "_WORDS", words)
    tensors = inputs(images=3, words=4, patches=5, units=6)
    counts = torch.tensor([4, 4, 4])
    upstream = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(4))
    expected = written_out(*tensors, scoring)
    actual = patch_scores(*tensors, counts, scoring)
    torch.testing.assert_close(actual, expected)
    for ours, theirs in zip(
        torch.autograd.grad((actual * upstream).sum(), tensors),
        torch.autograd.grad((expected * upstream).sum(), tensors),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scoring", get_args(Scoring))
def test_neither_padding_nor_autocast_changes_a_score(scoring: Scoring) -> None:
    patches, words, weight = inputs(images=2, words=5, patches=3, units=64)
    with torch.autocast("cpu", torch.bfloat16):
        scores = patch_scores(patches, words, weight, torch.tensor([5, 2]), scoring)
    expected = written_out(patches, words, weight, scoring)
    for image, count in enumerate((5, 2)):
        torch.testing.assert_close(scores[image, :count], expected[image, :count], rtol=1e-5, atol=1e-5)


def test_saturated_units_stay_finite() -> None:
    patches, words = torch.full((1, 1, 2), 500.0), torch.full((1, 1, 2), 500.0)
    weight = torch.tensor([1.0, 2.0])
    up = patch_scores(patches, words, weight, torch.tensor([1]), "tanh")
    down = patch_scores(-patches, -words, weight, torch.tensor([1]), "tanh")
    torch.testing.assert_close(up.item(), 3.0)
    torch.testing.assert_close(down.item(), -3.0)
