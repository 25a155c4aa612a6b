"""Convolutional networks as backbones, against transformers' own calls on the saved classifier."""

from pathlib import Path

import pytest
import torch

from tests.encoders.convolutional import FAMILIES, SIZE, save
from vitcapr.encoders.base import ImageEncoder
from vitcapr.encoders.image_encoders import load_image_encoder
from vitcapr.encoders.rollout import AttendingBackbone
from vitcapr.errors import UserError


def load(folder: Path, size: tuple[int, int]) -> ImageEncoder:
    return load_image_encoder(folder, size=size, dtype=torch.float32, device=torch.device("cpu"))


@pytest.mark.parametrize("family", FAMILIES)
def test_features_are_the_pooled_output_and_the_last_map(tmp_path: Path, family: str) -> None:
    whole = save(family, tmp_path)
    for size in ((SIZE, SIZE), (50, 37), (33, 96)):
        pixels = torch.randn(3, 3, *size, generator=torch.Generator().manual_seed(1))
        tower = load(tmp_path, size)
        with torch.inference_mode():
            own = whole.base_model(pixels)
            made = tower.features(pixels)
            torch.testing.assert_close(whole.classifier(made["cls"]), whole(pixels).logits, rtol=0, atol=1e-4)
        torch.testing.assert_close(made["cls"], own.pooler_output.flatten(1), rtol=0, atol=1e-5)
        assert tower.grid == own.last_hidden_state.shape[2:]
        places = own.last_hidden_state.permute(0, 2, 3, 1).flatten(1, 2)
        torch.testing.assert_close(made["patches"], places, rtol=0, atol=1e-5)
        assert tower.shapes == {"patches": tuple(places.shape[1:]), "cls": tuple(places.shape[2:])}
        assert made["cls"].std() > 1e-3


def test_what_a_convolutional_network_does_not_have_is_one_line(tmp_path: Path) -> None:
    save("convnext", tmp_path)
    with pytest.raises(UserError, match=r"does not run on pictures of 4 x 4.*a larger one"):
        load(tmp_path, (4, 4))
    with pytest.raises(UserError, match=r"\(convnext\) has no CLS token and no attention.*kind: cnn"):
        AttendingBackbone(tmp_path, (SIZE, SIZE), torch.float32)
