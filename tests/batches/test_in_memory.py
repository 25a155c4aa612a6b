"""The mean patch, computed once, trains the same retriever as the patches."""

import numpy as np
import pytest
import torch

from vitcapr.batches.in_memory import MemoryArray, MemoryFeatures, with_mean_patch
from vitcapr.errors import UserError
from vitcapr.models.image_towers import ImageTower


def test_the_mean_patch_in_memory_gives_the_bits_of_the_patches() -> None:
    draw = np.random.default_rng(0)
    cls, patches = draw.normal(size=(300, 8)), draw.normal(size=(300, 5, 8))
    store = MemoryFeatures(cls=MemoryArray(cls.astype(np.float16)), patches=MemoryArray(patches.astype(np.float16)))
    store.block = 7
    once = with_mean_patch(store)
    assert once.block == 7
    assert once["patches"].gather(np.arange(300)).shape == (300, 1, 8)
    tower = ImageTower(8, 4, pool="cls_mean", head="residual").eval()
    rows = draw.permutation(300)[:64]
    seen = [
        tower({name: torch.from_numpy(features[name].gather(rows)) for name in ("cls", "patches")})
        for features in (store, once)
    ]
    assert torch.equal(*seen)


def test_features_without_patches_are_one_line() -> None:
    with pytest.raises(UserError, match="these features have no 'patches'"):
        with_mean_patch(MemoryFeatures(cls=MemoryArray(np.zeros((2, 8), np.float16))))
