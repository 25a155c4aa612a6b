import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
import torch
from transformers import (
    CLIPVisionConfig,
    CLIPVisionModel,
    DeiTConfig,
    DeiTModel,
    Dinov2Config,
    Dinov2Model,
    Dinov2WithRegistersConfig,
    Dinov2WithRegistersModel,
    PreTrainedModel,
    ViTConfig,
    ViTModel,
)

from vitcapr.encoders.checkpoints import load_part, locate, stated_licence, weights_digest
from vitcapr.encoders.image_towers import Backbone, model_image_size
from vitcapr.errors import UserError

Save = Callable[..., Path]
Make = Callable[..., ViTModel]
SMALL = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.5}
FAMILIES = {
    "vit": (lambda: ViTModel(ViTConfig(**SMALL, intermediate_size=16, image_size=32, patch_size=8), False), 1),
    "deit": (lambda: DeiTModel(DeiTConfig(**SMALL, intermediate_size=16, image_size=32, patch_size=8), False), 2),
    "dinov2": (lambda: Dinov2Model(Dinov2Config(**SMALL, image_size=32, patch_size=8)), 1),
    "registers": (
        lambda: Dinov2WithRegistersModel(
            Dinov2WithRegistersConfig(**SMALL, image_size=32, patch_size=8, num_register_tokens=4)
        ),
        5,
    ),
    "clip": (
        lambda: CLIPVisionModel(CLIPVisionConfig(**SMALL, intermediate_size=16, image_size=32, patch_size=8)),
        1,
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_the_models_own_forward_pass(tmp_path: Path, family: str, save_checkpoint: Save) -> None:
    make, prefix = FAMILIES[family]
    torch.manual_seed(1)
    model: PreTrainedModel = make().eval()
    backbone = Backbone(save_checkpoint(model, tmp_path), (32, 32), torch.float32)
    pixels = torch.randn(3, 3, 32, 32)
    with torch.inference_mode():
        hidden = model(pixels).last_hidden_state
    features = backbone.features(pixels)
    assert (backbone.grid, backbone.prefix, backbone.dim) == ((4, 4), prefix, 8)
    torch.testing.assert_close(features["cls"], hidden[:, 0])
    torch.testing.assert_close(features["patches"], hidden[:, prefix:])
    assert features["patches"].shape == (3, 16, 8)


@pytest.mark.parametrize("family", FAMILIES)
def test_another_picture_size_interpolates_the_positions(tmp_path: Path, family: str, save_checkpoint: Save) -> None:
    model = FAMILIES[family][0]().eval()
    backbone = Backbone(save_checkpoint(model, tmp_path), (48, 24), torch.float32)
    assert backbone.grid == (6, 3)
    pixels = torch.randn(2, 3, 48, 24)
    options = {} if family in ("dinov2", "registers") else {"interpolate_pos_encoding": True}
    with torch.inference_mode():
        hidden = model(pixels, **options).last_hidden_state
    torch.testing.assert_close(backbone.features(pixels)["patches"], hidden[:, -18:])


def test_a_size_that_leaves_part_of_a_patch_is_refused(tmp_path: Path, save_checkpoint: Save, tiny_vit: Make) -> None:
    with pytest.raises(UserError, match="do not divide into patches"):
        Backbone(save_checkpoint(tiny_vit(), tmp_path), (20, 20), torch.float32)


def test_pickled_weights_are_refused(tmp_path: Path, save_checkpoint: Save, tiny_vit: Make) -> None:
    save_checkpoint(tiny_vit(), tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match="only pickled weights"):
        weights_digest(tmp_path)
    with pytest.raises(UserError, match="only pickled weights"):
        Backbone(tmp_path, (16, 16), torch.float32)


def test_weights_that_do_not_fill_the_model_are_refused(tmp_path: Path, save_checkpoint: Save, tiny_vit: Make) -> None:
    save_checkpoint(tiny_vit(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(UserError, match="weights lack"):
        Backbone(tmp_path, (16, 16), torch.float32)


def test_weights_of_other_shapes_are_refused(tmp_path: Path, save_checkpoint: Save, tiny_vit: Make) -> None:
    save_checkpoint(tiny_vit(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "intermediate_size": 24}))
    with pytest.raises(UserError, match=r"is \(.*\) in the weights, \(.*24.*\) by the configuration"):
        Backbone(tmp_path, (16, 16), torch.float32)


def test_a_configuration_that_transformers_does_not_know_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "of-my-own", "auto_map": {"AutoModel": "code.Model"}}')
    with pytest.raises(UserError, match="does not know this checkpoint"):
        model_image_size(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(UserError, match="not a ViT"):
        model_image_size(tmp_path)


def test_the_digest_follows_weights_and_configuration(tmp_path: Path, save_checkpoint: Save, tiny_vit: Make) -> None:
    save_checkpoint(tiny_vit(), tmp_path)
    first = weights_digest(tmp_path)
    (tmp_path / "README.md").write_text("words")
    assert weights_digest(tmp_path) == first
    config = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(config.replace("gelu", "relu"))
    assert weights_digest(tmp_path) != first


def test_the_folder_of_backbones_comes_before_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save_checkpoint: Save, tiny_vit: Make
) -> None:
    for place in ("backbones", "here"):
        save_checkpoint(tiny_vit(), tmp_path / place / "vit")
    monkeypatch.chdir(tmp_path / "here")
    assert locate("vit", "main").folder == (tmp_path / "here" / "vit").resolve()
    monkeypatch.setenv("VITCAPR_BACKBONES", str(tmp_path / "backbones"))
    assert locate("vit", "main").folder == (tmp_path / "backbones" / "vit").resolve()


def test_a_hub_id_without_a_network_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"'google/vit-none' .* was not found locally or on the hub"):
        locate("google/vit-none", "main")
    with pytest.raises(UserError, match="is not a folder"):
        locate(str(tmp_path / "absent"), "main")


@pytest.mark.parametrize(
    ("card", "config", "licence"),
    [
        ("---\nlicense: apache-2.0\ntags: [vision]\n---\nwords\n", {}, "apache-2.0"),
        ("---\nlicense: other\nlicense_name: my-licence\n---\n", {"license": "mit"}, "my-licence"),
        ("---\nlicense: other\n---\n", {}, "other"),
        ("words\n---\nlicense: mit\n---\n", {}, None),
        ("---\nlicense: [unclosed\n---\n", {"license": "mit"}, "mit"),
        ("---\nlicense: mit\n", {}, None),
        (None, {"license": "mit"}, "mit"),
        (None, {"license": 3}, None),
        (None, None, None),
    ],
)
def test_the_licence_that_a_checkpoint_states(
    tmp_path: Path, card: str | None, config: dict[str, object] | None, licence: str | None
) -> None:
    if card is not None:
        (tmp_path / "README.md").write_text(card)
    if config is not None:
        (tmp_path / "config.json").write_text(json.dumps(config))
    assert stated_licence(tmp_path) == licence


def test_damaged_weights_are_one_line(experiment: Any) -> None:
    (experiment.backbone / "model.safetensors").write_bytes(b"half")
    with pytest.raises(UserError, match="the weights cannot be read"):
        load_part(ViTModel, experiment.backbone)
