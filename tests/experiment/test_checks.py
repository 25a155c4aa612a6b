"""What would end a run after minutes ends in ``vitcapr config check``; what a file can tell ends every start."""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub.errors import HFValidationError

from vitcapr.api.model_files import ModelFiles
from vitcapr.commands.config import check
from vitcapr.config.captioner import PatchAttentionConfig
from vitcapr.config.training import CaptionerPhaseConfig
from vitcapr.errors import UserError
from vitcapr.experiment.checks import lacks
from vitcapr.experiment.experiment import Experiment, load_experiment
from vitcapr.extensions.exchange.foreign_files import open_foreign
from vitcapr.extensions.exchange.importing import import_features
from vitcapr.training.phases import images_in_batch

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
RETRIEVES = {"retrievers": {"r": {"backbone": "b"}}}
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
    monkeypatch.setenv("VITCAPR_STORES", str(tmp_path / "stores"))
    for name, shapes in STORES.items():
        arrays: dict[str, Any] = {array: np.zeros((3, *shape), np.float32) for array, shape in shapes.items()}
        np.savez(tmp_path / f"{name}.npz", image_id=np.array(["a.png", "b.png", "c.png"]), **arrays)
        with open_foreign(tmp_path / f"{name}.npz") as foreign:
            settings: dict[str, Any] = {"data": None, "identity": "image_id", "grid": (0, 0)}
            sealed = import_features(foreign, tmp_path / "stores", name, **settings, advance=print, say=print)
        sealed.parent.rename(tmp_path / "stores" / name)
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
    (
        {**CAPTIONER, "backbones": {"b": {"source": "trained"}}},
        "backbones.b: source 'trained' needs a data set with object masks",
    ),
    (with_table(captions="no.csv"), "data.table.captions: no such file or folder (no.csv)"),
    (with_table(images="."), "data.table.images: the folder contains the results (.)"),
]
STORES = {"wide": {"patches": (9, 6), "cls": (4,)}, "patches": {"patches": (9, 6)}, "cls": {"cls": (4,)}}
"""Arrays of imported stores, without a grid."""


def reading(model: dict[str, Any], source: str = "vit", **backbone: Any) -> dict[str, Any]:
    return {"backbones": {"b": {"source": source, **backbone}}, **model}


def captioner(**keys: Any) -> dict[str, Any]:
    return {"captioners": {"a": {"backbone": "b", **keys}}}


def prefix(grid: int) -> dict[str, Any]:
    return captioner(architecture="language_model", language_model={"source": "gpt2"}, prefix={"grid": grid})


ALIGNMENT = {
    "text_encoders": {"t": {"source": "bert", "max_length": 32}},
    "alignments": {"f": {"image": "b", "text": "t", "inputs": ["cls+patches_2"]}},
}
UNREADABLE = [
    (reading(captioner(), patches="none"), "captioners.a reads 'patches', which the features of backbones.b do not"),
    (reading(captioner(), "siglip", output="aligned"), "(siglip); choose what reads cls, or set backbones.b.output: h"),
    (reading(captioner(layer=2), layers=[1]), "name the layer in backbones.b.layers, which has [1]"),
    (reading(RETRIEVES, patches="none"), "retrievers.r (pool cls_mean) reads 'patches'"),
    (reading(RETRIEVES, patches=3), "backbones.b.patches: 3, but the network has 2 x 2 patches (vit); set patches to"),
    (reading(prefix(3)), "prefix.grid: 3 is to pool a larger square, but 4 patches are stored (vit); lower it"),
    (reading(ALIGNMENT), "alignments.f reads 'patches_2'"),
    (
        reading(captioner(), "store:patches"),
        "reads 'cls', which the features of backbones.b do not have (store:patches)",
    ),
    (reading(captioner(), "store:cls"), "choose what reads cls, or import patches too"),
    (reading(captioner(), "store:none"), "backbones.b: no such feature store (none/manifest.json)"),
    (reading(captioner(layer=2), "store:wide"), "reads 'patches_2'"),
    (reading(RETRIEVES, "store:patches"), "retrievers.r (pool cls_mean) reads 'cls'"),
]
SAMPLED = {"r": {"backbone": "b", "training": {"pairs": 3}}}
DATA_MISTAKES = [
    (reading({"retrievers": SAMPLED}), "retrievers.r.training.pairs: 3, but the training images have 2 captions"),
    (
        reading({**ALIGNMENT, "alignments": {"f": {"image": "b", "text": "t", "sizes": [10, None]}}}),
        "alignments.f.sizes: 10",
    ),
    ({**with_backbone("vit"), "run": {}}, "no image is in the split 'test', which run.splits needs"),
    (SCENES, "no image is in the split 'test', which run.splits needs (data.scenes: 11 train, 1 validation)"),
    (with_table(columns={"language": "tongue"}, language="en"), None),
    (with_table(columns={"language": "tongue"}, language="de"), "data.table.language has no effect"),
    ({**with_table(columns={"language": "tongue"}), "text": {"language": "zh"}}, "text.language reads 'zh', but"),
    (with_table(splits="hash", validation=1e-9), "none of 3 images is in the validation split"),
]


@pytest.mark.parametrize(("values", "message"), [*CHECKPOINT_MISTAKES, *UNREADABLE])
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


POOLS_PATCHES = {"backbone": "b", "image": {"pool": "attention"}}
LAYERS = {"cls": (8,), "patches": (4, 8), "cls_2": (8,), "patches_2": (4, 8)}
READABLE = [
    (reading(captioner(), "store:wide"), {"cls": (4,), "patches": (9, 6)}),
    (reading(captioner(init_from_cls=False), "store:patches"), {"patches": (9, 6)}),
    (
        reading({**captioner(init_from_cls=False), "retrievers": {"r": POOLS_PATCHES}}, "store:patches"),
        {"patches": (9, 6)},
    ),
    (reading(captioner(architecture="transformer"), "store:patches"), {"patches": (9, 6)}),
    (reading(captioner(architecture="baseline"), "store:cls"), {"cls": (4,)}),
    (reading(prefix(0), "store:cls"), {"cls": (4,)}),
    (reading(captioner(layer=2), layers=[2]), LAYERS),
    (reading(captioner(), patches=1), {"cls": (8,), "patches": (1, 8)}),
    (reading(captioner(), "resnet"), {"cls": (), "patches": ()}),
]


@pytest.mark.parametrize(("values", "shapes"), READABLE)
def test_a_model_needs_only_the_arrays_that_it_reads(study: Path, values: dict[str, Any], shapes: Any) -> None:
    experiment = load_experiment(write(study, **values))
    stored, attends = experiment.features.stored["b"], experiment.config.captioners["a"].attends
    assert stored.shapes == shapes
    placed = attends and stored.grid != (0, 0)
    line = "captioners.a: no attention is drawn, because the patches of backbones.b have no grid"
    assert experiment.contents.splitlines()[1:] == [line] * (attends and not placed)
    assert bool(experiment.captioning.attention) == placed


def test_a_folder_that_cannot_be_written_is_one_line(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write everywhere, so the answer of the operating system is replaced."""
    file = write(study, **with_backbone("vit"))
    (study / "results").mkdir()
    writable = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != study / "results" and writable(path, mode))
    with pytest.raises(UserError, match=r"the results cannot be written .*results.; make this folder writable"):
        load_experiment(file)


def test_a_file_without_models_makes_the_data_set_alone(study: Path) -> None:
    experiment = load_experiment(write(study))
    assert "only the data set is made" in experiment.contents
    assert (experiment.targets.tables, experiment.targets.figures) == (["results/x/data/manifest.json"], [])
    assert experiment.targets.metrics == []


def test_what_this_machine_lacks_is_one_line(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitcapr.experiment.experiment.shutil.which", lambda _: None)  # no sbatch
    experiment = load_experiment(write(study, **reading(prefix(0)), device="cuda"))
    monkeypatch.setattr("vitcapr.experiment.paths._GPUS", ())
    monkeypatch.setattr("vitcapr.experiment.checks.find_spec", lambda _: None)
    monkeypatch.setattr("vitcapr.experiment.checks._missing_checkpoints", lambda *_: ())
    gpu, lora = map(str, lacks(experiment))
    assert gpu == "no GPU is on this machine (device: cuda); set device to auto or cpu"
    assert lora.startswith("the library peft is not installed (captioners.a.train: lora); pip install 'vitcapr[lang")
    experiment.on_cluster = True
    assert list(map(str, lacks(experiment))) == [lora]
    (study / "bert/modules.json").write_text("[]")
    values = with_encoder("bert", max_length=16)
    (pooled,) = map(str, lacks(load_experiment(write(study, **values))))
    assert pooled.startswith("the library sentence_transformers is not installed (text_encoders.t.source); pip install")
    assert pooled.endswith("'vitcapr[sentence-transformers]'")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (OSError("no route"), "the hub cannot be reached (OSError)"),
        (HFValidationError("odd"), "the hub has no such model"),
        (None, None),
        (1.0, "the hub does not answer in 0.1 s"),
    ],
)
def test_the_hub_is_asked_for_a_checkpoint_and_not_waited_for(
    study: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, message: str | None
) -> None:
    def model_info(*_: Any, **__: Any) -> None:
        if isinstance(answer, Exception):
            raise answer
        time.sleep(answer or 0)

    experiment = load_experiment(write(study, **with_backbone("org/name")))
    (offline,) = lacks(experiment)
    assert "checkpoint 'org/name': HF_HUB_OFFLINE is set, and the cache of the hub does not hold it" in str(offline)
    assert list(lacks(experiment, ['{"source": "another"}'])) == []  # The planned jobs name no such checkpoint.
    assert len(list(lacks(experiment, ['{"source": "org/name"}']))) == 1
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("vitcapr.experiment.checks.PATIENCE", 0.1 if answer == 1.0 else 5.0)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", model_info)
    problems = list(map(str, lacks(experiment)))
    assert len(problems) == (message is not None)
    assert (message or "") in "".join(problems)


def test_where_the_scores_of_alignments_are_is_said(study: Path) -> None:
    alone = {**ALIGNMENT, "alignments": {"f": {"image": "b", "text": "t"}}}
    said = "summary.csv gets no scores: there is no captioner or retriever; those of alignments are in results/x/alignm"
    assert said in load_experiment(write(study, **reading(alone))).contents
    assert "summary.csv" not in load_experiment(write(study, **reading({**alone, **captioner()}))).contents


@pytest.mark.parametrize(("warmup", "said"), [(None, False), (100, True), (3, False), (4, True)])
def test_a_warm_up_that_never_ends_is_said(study: Path, warmup: int | None, said: bool, capsys: Any) -> None:
    """Two images in batches of 4 are a step an epoch."""
    phase = {"epochs": 4, "warmup_steps": warmup}
    check([write(study, **reading(captioner(training={"phases": phase})))])
    line = f"captioners.a.training.phases[0].warmup_steps: {warmup}, but the phase has 4 steps: the learning rate"
    assert (line in capsys.readouterr().out) == said


@pytest.mark.parametrize(("images", "batch"), [(5, 4), (45, 5), (135, 16), (256, 32), (30_000, 32)])
def test_few_photographs_are_trained_on_in_small_batches(images: int, batch: int) -> None:
    assert images_in_batch(CaptionerPhaseConfig(epochs=1), images) == batch
    assert images_in_batch(CaptionerPhaseConfig(epochs=1, batch_images=7), images) == 7


def test_imported_features_have_no_network_for_new_photographs(study: Path) -> None:
    files = ModelFiles(study, {}, PatchAttentionConfig(backbone="b"), "captioner")
    with pytest.raises(UserError, match="need the network of its image features, and these were imported"):
        files.encoders([study / "stores/wide/manifest.json"], None, None)


def test_all_mistakes_are_said_at_once(study: Path) -> None:
    values = {**with_backbone("bert"), "data": with_table(captions="no.csv")["data"]}
    with pytest.raises(UserError, match=r"2 mistakes:\n.*no\.csv.*\n.*bert"):
        check([write(study, **values)])
