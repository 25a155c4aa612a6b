"""Pooling in blocks against the whole batch in float32, with autograd's own gradient."""

import pytest
import torch
from torch import Tensor

from vitcapr.models import patch_pool
from vitcapr.models.patch_pool import pool_patches

IMAGES, PATCHES, WIDTH = 7, 5, 6


def plainly(patches: Tensor, queries: Tensor, mean: bool) -> Tensor:
    patches = patches.float()
    parts = [torch.softmax(queries @ patches.transpose(1, 2), dim=2) @ patches]
    return torch.cat([*parts, patches.mean(1, keepdim=True)] if mean else parts, dim=1)


@pytest.mark.parametrize("cached", [1, 3 * 4 * PATCHES * WIDTH, 1 << 20], ids=["one", "three", "all"])
@pytest.mark.parametrize("mean", [False, True])
def test_blocks_give_what_the_batch_gives(mean: bool, cached: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patch_pool, "_CACHED", cached)
    torch.manual_seed(0)
    patches, towards = torch.randn(IMAGES, PATCHES, WIDTH).half(), torch.randn(IMAGES, 2 + mean, WIDTH)
    queries, again = (torch.nn.Parameter(value) for value in torch.randn(2, WIDTH).expand(2, 2, WIDTH).clone())
    found, expected = pool_patches(patches, queries, mean), plainly(patches, again, mean)
    torch.testing.assert_close(found, expected)
    (found * towards).sum().backward()
    (expected * towards).sum().backward()
    torch.testing.assert_close(queries.grad, again.grad)


def test_no_image_gives_no_gradient() -> None:
    queries = torch.nn.Parameter(torch.randn(2, WIDTH))
    pooled = pool_patches(torch.empty(0, PATCHES, WIDTH).half(), queries, mean=True)
    assert pooled.shape == (0, 3, WIDTH)
    pooled.sum().backward()
    assert queries.grad is not None
    assert not queries.grad.any()
