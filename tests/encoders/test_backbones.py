import json
from collections.abc import Callable
from pathlib import Path

import huggingface_hub.constants
import pytest
import torch
from transformers import AutoConfig, AutoModel, PreTrainedModel

from tests.checkpoints import save_checkpoint, tiny_vit
from vitcapr.encoders.checkpoints import locate, stated_licence
from vitcapr.encoders.image_towers import Backbone, model_image_size
from vitcapr.errors import UserError

SHAPE = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.5}
SHAPE |= {"intermediate_size": 16, "image_size": 32, "patch_size": 8}
PREFIXES = {"vit": 1, "deit": 2, "dinov2": 1, "dinov2_with_registers": 5, "clip_vision_model": 1}
"""Tokens before the patches, by family."""


def random_model(family: str) -> PreTrainedModel:
    torch.manual_seed(1)
    model: PreTrainedModel = AutoModel.from_config(AutoConfig.for_model(family, **SHAPE))
    return model.eval()


@pytest.mark.parametrize("family", PREFIXES)
def test_equals_the_models_own_forward_pass(tmp_path: Path, family: str) -> None:
    """With interpolated positions."""
    model, prefix, size = random_model(family), PREFIXES[family], (48, 24)
    backbone = Backbone(save_checkpoint(model, tmp_path), size, torch.float32)
    pixels = torch.randn(3, 3, *size)
    options = {} if family.startswith("dinov2") else {"interpolate_pos_encoding": True}
    with torch.inference_mode():
        hidden = model(pixels, **options).last_hidden_state
    features = backbone.features(pixels)
    assert (backbone.grid, backbone.prefix, backbone.dim) == ((size[0] // 8, size[1] // 8), prefix, 8)
    torch.testing.assert_close(features["cls"], hidden[:, 0])
    torch.testing.assert_close(features["patches"], hidden[:, prefix:])


def changed(**values: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **values}))

    return change


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def damaged(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"half")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (pickled, "only pickled weights"),
        (damaged, "the weights cannot be read"),
        (changed(num_hidden_layers=3), "weights lack"),
        (changed(intermediate_size=24), r"is \(.*\) in the weights, \(.*24.*\) by the configuration"),
        (changed(patch_size=7), "pictures of 16 x 32 do not divide into patches of 7 x 7"),
    ],
)
def test_a_bad_checkpoint_is_one_line(tmp_path: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(save_checkpoint(tiny_vit(), tmp_path))
    with pytest.raises(UserError, match=message):
        Backbone(tmp_path, (16, 32), torch.float32)


def test_a_configuration_that_transformers_does_not_know_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "of-my-own", "auto_map": {"AutoModel": "code.Model"}}')
    with pytest.raises(UserError, match="does not know this checkpoint"):
        model_image_size(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(UserError, match="a bert does not read pictures"):
        model_image_size(tmp_path)


def test_the_folder_of_backbones_comes_before_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        ("words\n---\nlicense: mit\n---\n", {}, None),
        ("---\nlicense: [unclosed\n---\n", {"license": "mit"}, "mit"),
        (None, {"license": "mit"}, "mit"),
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
