"""The captioner that knows where patches are."""

import pytest
import torch

from tests.models.untrained import configured, untrained
from vitcapr.errors import UserError

SIZES = {"embedding_dim": 8, "hidden_dim": 6, "layers": 1, "heads": 2}


@torch.no_grad()
def test_the_same_patches_in_other_places_are_another_image() -> None:
    patches, words = torch.randn(1, 4, 8), torch.tensor([[1, 5, 6]])
    images = patches, patches.flip(1)
    mask, owner = torch.ones_like(words, dtype=torch.bool), torch.zeros(1, dtype=torch.long)

    def logits(kind: str, **settings: int) -> list[torch.Tensor]:
        model = untrained(vocabulary=11, feature_dim=8, kind=kind, **SIZES, **settings).eval()
        return [model(model.encode({"patches": image}), words, mask, owner) for image in images]

    assert torch.allclose(*logits("transformer"), atol=1e-5)
    assert not torch.allclose(*logits("placed_transformer", places=4), atol=1e-2)


def test_another_number_of_patches_is_an_error() -> None:
    config = configured(kind="placed_transformer", **SIZES, places=4)
    config.check_patches(4)
    with pytest.raises(UserError, match="places: 4, but 9 patches are stored"):
        config.check_patches(9)
