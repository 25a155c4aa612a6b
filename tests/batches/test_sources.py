"""Sources of features: which view of an image a batch shows, and the mean patch in memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vitcapr.batches.image_batches import Batch, Batches
from vitcapr.batches.sources import (
    AugmentedViews,
    MemoryArray,
    MemoryFeatures,
    check_widths,
    draw_augmented_views,
    feature_dims,
    with_mean_patch,
)
from vitcapr.batches.texts import FeatureTexts
from vitcapr.errors import UserError
from vitcapr.models.towers import ImageTower
from vitcapr.store.reader import FeatureStore

IMAGES = 200


def view(number: int) -> MemoryFeatures:
    """Image i of view v is 10 i + v everywhere."""
    values = (10 * np.arange(IMAGES) + number).astype(np.float32)
    return MemoryFeatures(
        cls=MemoryArray(values[:, None]), patches=MemoryArray(np.broadcast_to(values[:, None, None], (IMAGES, 3, 2)))
    )


VIEWS = [view(number) for number in range(3)]


def read(start: int = 0, epoch: int = 1, **options: object) -> list[Batch]:
    texts = FeatureTexts(MemoryArray(np.zeros((IMAGES, 1), np.float16)), np.arange(IMAGES), np.arange(IMAGES))
    drawn = draw_augmented_views(VIEWS, 7, epoch)
    batches = Batches(
        drawn, texts, np.arange(IMAGES), 32, arrays=("cls", "patches"), seed=7, epoch=epoch, start_batch=start,
        **options,  # type: ignore[arg-type]
    )  # fmt: skip
    return list(batches)


def test_a_batch_shows_every_image_in_one_view_and_an_epoch_shows_all_views() -> None:
    shown = []
    for batch in read():
        images, views = batch.features["cls"][:, 0].long() // 10, batch.features["cls"][:, 0].long() % 10
        assert images.tolist() == batch.rows.tolist()
        assert torch.equal(batch.features["patches"], batch.features["cls"][:, None].expand(-1, 3, 2))
        shown += views.tolist()
    assert min(np.bincount(shown, minlength=3)) > IMAGES / 5


def test_the_same_from_any_batch_on_and_another_view_in_another_epoch() -> None:
    whole = read()
    for start in (1, 4):
        for again, batch in zip(read(start), whole[start:], strict=True):
            assert torch.equal(again.features["cls"], batch.features["cls"])
    drawn, other = (AugmentedViews(VIEWS, 7, epoch)["cls"].gather(np.arange(IMAGES)) for epoch in (1, 2))
    assert 0.5 < (drawn != other).mean() < 0.8


def test_a_single_view_is_the_store_itself() -> None:
    assert draw_augmented_views(VIEWS[:1], 7, 1) is VIEWS[0]


def test_the_mean_patch_in_memory_gives_the_bits_of_the_patches() -> None:
    draw = np.random.default_rng(0)
    cls, patches = draw.normal(size=(300, 8)), draw.normal(size=(300, 5, 8))
    store = MemoryFeatures(cls=MemoryArray(cls.astype(np.float16)), patches=MemoryArray(patches.astype(np.float16)))
    once = with_mean_patch(store)
    assert once["patches"].gather(np.arange(300)).shape == (300, 1, 8)
    tower = ImageTower(8, 4, pool="cls_mean", head="residual").eval()
    rows = draw.permutation(300)[:64]
    seen = [
        tower({name: torch.from_numpy(features[name].gather(rows)) for name in ("cls", "patches")})
        for features in (store, once)
    ]
    assert torch.equal(*seen)


class Store(dict[str, np.ndarray]):
    """Arrays of a store."""

    check_width = FeatureStore.check_width
    path = Path("store")


@pytest.mark.parametrize(
    ("arrays", "dims"),
    [
        (("cls",), {"feature_dim": 3}),
        (("patches",), {"feature_dim": 5}),
        (("cls", "patches"), {"feature_dim": 5, "cls_dim": 3}),
    ],
)
def test_a_model_is_built_for_the_widths_of_the_arrays_that_it_reads(arrays: Any, dims: dict[str, int]) -> None:
    store: Any = Store(cls=np.zeros((2, 3)), patches=np.zeros((2, 4, 5)))
    assert feature_dims(store, arrays) == dims
    check_widths(store, arrays, dims)
    with pytest.raises(UserError, match=r"reads features of width 9, these are"):
        check_widths(store, arrays, dict.fromkeys(dims, 9))
