"""What would end a run after minutes ends in ``vitcapr config check``; what a file can tell ends every start."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from vitcapr.commands.config import check
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import Experiment

VIT = {"model_type": "vit", "hidden_size": 8, "num_hidden_layers": 2, "image_size": 16, "patch_size": 8}
CHECKPOINTS: dict[str, dict[str, Any]] = {
    "vit": VIT,
    "resnet": {"model_type": "resnet", "depths": [2]},
    "swin": {**VIT, "model_type": "swin", "depths": [2, 2]},
    "bert": {"model_type": "bert", "max_position_embeddings": 32},
    "siglip": {"model_type": "siglip", "vision_config": VIT, "text_config": {}},
    "blip2": {"model_type": "blip-2", "text_config": {"model_type": "opt"}},
    "pickled": VIT,
    "mute": {"model_type": "bert"},
}
CAPTIONER = {"captioners": {"a": {"backbone": "b"}}}
RETRIEVER = {"retrievers": {"r": {"backbone": "b", "text": {"kind": "features", "encoder": "t"}}}}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two pictures of train, one of validation and a checkpoint of each kind."""
    monkeypatch.chdir(tmp_path)
    for name in ("VITCAPR_DATA", "VITCAPR_BACKBONES"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "images").mkdir()
    for name in "abc":
        (tmp_path / "images" / f"{name}.png").touch()
    lines = ["image,caption,split,tongue", "a.png,a dog,train,en", "b.png,a cat,train,en", "c.png,a cow,val,en"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    for name, config in CHECKPOINTS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
        (tmp_path / name / ("pytorch_model.bin" if name == "pickled" else "model.safetensors")).touch()
        if name != "mute":
            (tmp_path / name / "tokenizer.json").touch()
    return tmp_path


def write(study: Path, **values: Any) -> Path:
    given = {
        "experiment": "x",
        "data": {"dataset": "table", "table": {"images": "images", "captions": "t.csv"}},
        "run": {"splits": ["validation"]},
    }
    path = study / "x.yaml"
    path.write_text(yaml.safe_dump({**given, **values}))
    return path


def with_backbone(source: str, **keys: Any) -> dict[str, Any]:
    return {"backbones": {"b": {"source": source, **keys}}, **CAPTIONER}


def with_encoder(source: str, **keys: Any) -> dict[str, Any]:
    encoder = {"source": source, "max_length": 32, **keys}
    return {"backbones": {"b": {"source": "vit"}}, "text_encoders": {"t": encoder}, **RETRIEVER}


def with_towers(image: str, text: str) -> dict[str, Any]:
    towers = {"image": {"backbone": "b"}, "text": {"t": {"source": text, "max_length": 16}}}
    return {"backbones": {"b": {"source": image}}, "finetuned_dual_encoders": {"f": towers}}


def with_table(**table: Any) -> dict[str, Any]:
    data = {"dataset": "table", "table": {"images": "images", "captions": "t.csv", **table}}
    return {**with_backbone("vit"), "data": data}


SCENES = {"data": {"scenes": {"images": 12}}, "captioners": {"a": {"backbone": "vit"}}, "run": {}}
CHECKPOINT_MISTAKES = [
    (with_backbone("swin", layers=[1]), "a network with stages has no layers of patches"),
    (with_backbone("bert"), "backbones.b: a model of type bert does not read pictures"),
    (with_backbone("pickled"), "backbones.b: the checkpoint has no model.safetensors, only pickled weights"),
    (with_backbone("resnet", kind="vit"), "of kind cnn (resnet), not vit (resnet); set kind: auto"),
    (with_backbone("vit", output="aligned"), "has no output 'aligned' (vit); set output to hidden"),
    (with_backbone("vit", layers=[1, 3]), "the network has 2 layers, and layer 3 is to be stored"),
    (with_backbone("resnet", layers=[1]), "a network with stages has no layers of patches"),
    (with_backbone("vit", image_size=20), "pictures of 20 x 20 do not divide into patches of 8 x 8"),
    (with_encoder("mute"), "text_encoders.t: the text encoder has no tokenizer (mute)"),
    (with_encoder("pickled"), "text_encoders.t: the checkpoint has no model.safetensors"),
    (with_encoder("bert", output="aligned"), "a text encoder of kind bert has no output 'aligned'"),
    (with_encoder("bert", max_length=64), "max_length 64 is more than the 32 tokens that the text encoder reads"),
    (with_encoder("blip2"), "the language model of this BLIP-2 (opt) has no encoder of text"),
    (with_towers("resnet", "bert"), "backbones.b: a network of kind cnn has no CLS token to fine-tune"),
    (with_towers("vit", "mute"), "finetuned_dual_encoders.f.text.t: the text encoder has no tokenizer"),
    ({**with_backbone("vit"), "captioners": {}}, "the experiment names nothing to run"),
    ({**CAPTIONER, "backbones": {"b": {"source": "trained"}}}, "backbones.b is to be trained here"),
    (with_table(captions="no.csv"), "data.table.captions: no such file or folder (no.csv)"),
    (with_table(images="."), "data.table.images: the folder contains the results (.)"),
]
DATA_MISTAKES = [
    ({**with_backbone("vit"), "run": {}}, "no image is in the split 'test', which run.splits needs"),
    (SCENES, "no image is in the split 'test', which run.splits needs (data.scenes: 11 train, 1 validation)"),
    (with_table(columns={"language": "tongue"}, language="en"), None),
    (with_table(columns={"language": "tongue"}, language="de"), "data.table.language has no effect"),
    ({**with_table(columns={"language": "tongue"}), "text": {"language": "zh"}}, "text.language reads 'zh', but"),
    (with_table(splits="hash", validation=1e-9), "none of 3 images is in the validation split"),
]


@pytest.mark.parametrize(("values", "message"), CHECKPOINT_MISTAKES)
def test_a_checkpoint_or_file_that_ends_every_start(study: Path, values: dict[str, Any], message: str) -> None:
    values = yaml.safe_load(write(study, **values).read_text())
    with pytest.raises(UserError) as error:
        Experiment.from_config(values, results=study / "results")
    assert message in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.parametrize(("values", "message"), DATA_MISTAKES)
def test_data_that_ends_the_check(study: Path, values: dict[str, Any], message: str | None) -> None:
    file = write(study, **values)
    if message is None:
        check([file])
        return
    with pytest.raises(UserError) as error:
        check([file])
    assert message in str(error.value)


def test_all_mistakes_are_said_at_once(study: Path) -> None:
    values = {**with_backbone("bert"), "data": with_table(captions="no.csv")["data"]}
    with pytest.raises(UserError, match=r"2 mistakes:\n.*no\.csv.*\n.*bert"):
        check([write(study, **values)])


@pytest.mark.parametrize(
    ("source", "drawn"), [("vit", True), ("resnet", False), ("swin", False), ("siglip", False), ("hub/id", True)]
)
def test_a_rollout_is_drawn_of_what_has_attention_to_cls(study: Path, source: str, drawn: bool) -> None:
    values = yaml.safe_load(write(study, **with_backbone(source)).read_text())
    experiment = Experiment.from_config(values, results=study / "results")
    rules = {rule.stage.name: rule.targets for rule in experiment.figure_rules}
    assert bool(rules["draw_rollout"]) == drawn
