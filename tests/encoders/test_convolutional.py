"""Convolutional networks as backbones, against transformers' own calls on the saved classifier."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForImageClassification, PreTrainedModel

from vitcapr.encoders.image_encoders import load_image_encoder
from vitcapr.encoders.image_towers import Backbone
from vitcapr.encoders.network_checks import ImageEncoder
from vitcapr.errors import UserError

SIZE = 42
STAGES = {"hidden_sizes": [8, 16], "depths": [1, 2]}
FAMILIES: dict[str, dict[str, Any]] = {
    "resnet": {**STAGES, "embedding_size": 8},
    "regnet": {**STAGES, "embedding_size": 8, "groups_width": 8},
    "convnext": {**STAGES, "num_stages": 2, "layer_scale_init_value": 0.5},
    "convnextv2": {**STAGES, "num_stages": 2},
    "mobilenet_v1": {"depth_multiplier": 0.1},
    "mobilenet_v2": {"depth_multiplier": 0.1},
    "bit": {**STAGES, "embedding_size": 8, "num_groups": 4},
}


def save(family: str, folder: Path) -> PreTrainedModel:
    """The classifier, in evaluation mode; its statistics of batches are those of some pictures, not 0 and 1."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **FAMILIES[family])
    model: PreTrainedModel = AutoModelForImageClassification.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
        for _ in range(5):
            model.train()(torch.randn(8, 3, SIZE, SIZE) + 0.3)
    model.save_pretrained(folder)
    return model.eval()


def load(folder: Path, size: tuple[int, int]) -> ImageEncoder:
    return load_image_encoder(folder, size=size, dtype=torch.float32, device=torch.device("cpu"))


@pytest.mark.parametrize("family", FAMILIES)
def test_features_are_the_pooled_output_and_the_last_map(tmp_path: Path, family: str) -> None:
    whole = save(family, tmp_path)
    for size in ((50, 37), (33, 96)):
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
    with pytest.raises(UserError, match=r"\(convnext\) has no CLS token"):
        Backbone(tmp_path, (SIZE, SIZE), torch.float32).require_cls()
