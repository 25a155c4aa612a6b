"""Random changes of pictures, against what they are by hand."""

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from vitcapr.extensions.finetuning.augment import Augmentation, Draws, augment, blur, rotate, turn_hue

LIMITS = Augmentation(probability=0.7, rotation=30, flip=0.5, brightness=0.4, hue=0.2, blur=1.5)


def pictures(number: int, height: int = 12, width: int = 10) -> torch.Tensor:
    generator = np.random.default_rng(0)
    return torch.from_numpy(generator.integers(0, 256, (number, height, width, 3), dtype=np.uint8))


def drawn(limits: Augmentation, rows: list[int], seed: int = 1, epoch: int = 2) -> Draws:
    return Draws.of(limits, seed, epoch, rows)


def test_a_picture_changes_the_same_way_in_any_batch() -> None:
    pixels = pictures(9)
    whole = augment(pixels, drawn(LIMITS, list(range(9))), LIMITS.radius)
    for rows in ([4], [8, 0, 3]):
        part = augment(pixels[rows], drawn(LIMITS, rows), LIMITS.radius)
        assert torch.equal(part, whole[rows])
    assert not torch.equal(whole, pixels)


@pytest.mark.parametrize("changes", [{"seed": 2}, {"epoch": 3}])
def test_another_seed_or_epoch_changes_otherwise(changes: dict[str, int]) -> None:
    rows = list(range(9))
    pixels = pictures(9)
    first, other = drawn(LIMITS, rows), drawn(LIMITS, rows, **changes)
    assert not torch.equal(augment(pixels, first, LIMITS.radius), augment(pixels, other, LIMITS.radius))


def test_nothing_drawn_leaves_the_bytes() -> None:
    pixels = pictures(5)
    assert torch.equal(augment(pixels, Draws.none(5), 0), pixels)
    still = Augmentation(probability=1, rotation=0, flip=0, brightness=0, hue=0, blur=0)
    assert torch.equal(augment(pixels, drawn(still, [0, 1, 2, 3, 4]), still.radius), pixels)


def test_draws_stay_inside_their_limits() -> None:
    draws = drawn(LIMITS, list(range(400)))
    assert np.abs(draws.angle).max() <= 30
    assert np.abs(draws.angle).max() > 25
    assert 0.6 <= draws.brightness.min() < 0.7
    assert 1.3 < draws.brightness.max() <= 1.4
    assert np.abs(draws.hue).max() <= 0.2
    assert draws.blur.min() >= 0
    assert draws.blur.max() <= 1.5
    assert draws.flip.mean() == pytest.approx(0.5, abs=0.1)
    assert (draws.angle == 0).mean() == pytest.approx(0.3, abs=0.1)


def test_flip() -> None:
    pixels = pictures(1)
    assert torch.equal(augment(pixels, drawn(Augmentation(probability=0, flip=1), [0]), 0), pixels.flip(2))


def test_turns_by_multiples_of_90_degrees_move_whole_pixels() -> None:
    square = pictures(1, 8, 8).permute(0, 3, 1, 2).float()
    torch.testing.assert_close(rotate(square, torch.tensor([90.0])), square.rot90(1, (2, 3)), atol=1e-3, rtol=0)
    oblong = pictures(1, 8, 14).permute(0, 3, 1, 2).float()
    torch.testing.assert_close(rotate(oblong, torch.tensor([180.0])), oblong.flip(2, 3), atol=1e-3, rtol=0)


def test_brightness_multiplies_and_stops_at_white() -> None:
    draws = Draws(*[np.zeros(1)] + [np.zeros(1, bool)] + [np.array([1.5])] + [np.zeros(1)] * 2)
    pixels = torch.tensor([[[[0, 100, 101], [200, 255, 10]]]], dtype=torch.uint8)
    assert augment(pixels, draws, 0)[0, 0].tolist() == [[0, 150, 152], [255, 255, 15]]


def test_a_turn_of_hue_leaves_grey_and_luma_and_a_full_turn_leaves_all() -> None:
    grey = torch.full((1, 3, 2, 2), 90.0)
    torch.testing.assert_close(turn_hue(grey, torch.tensor([0.3])), grey, atol=1e-3, rtol=0)
    colours = 100 + 20 * torch.rand(4, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(turn_hue(colours, torch.ones(4)), colours, atol=1e-2, rtol=0)
    turned = turn_hue(colours, torch.full((4,), 0.25))
    luma = torch.tensor([0.299, 0.587, 0.114])[None, :, None, None]
    torch.testing.assert_close((turned * luma).sum(1), (colours * luma).sum(1), atol=1e-2, rtol=0)
    assert (turned - colours).abs().max() > 3


def test_blur_spreads_a_point_as_the_gaussian_says_and_leaves_an_even_picture() -> None:
    point = torch.zeros(1, 3, 9, 9)
    point[0, :, 4, 4] = 1
    expected = torch.from_numpy(gaussian_filter(point[0].numpy(), 0.8, radius=3, axes=(1, 2)))
    torch.testing.assert_close(blur(point, torch.tensor([0.8]), 3), expected[None])
    even = torch.full((2, 3, 6, 5), 7.0)
    torch.testing.assert_close(blur(even, torch.tensor([0.5, 2.0]), 6), even)
