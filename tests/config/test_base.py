"""A mistake in the configuration is one line that names the key and, where there is one, the key that was meant."""

from pathlib import Path

import pytest
import yaml

from vitcapr.config.base import parse, parse_settings
from vitcapr.config.captioner import BaselineConfig, PatchAttentionConfig
from vitcapr.config.decoding import DecodingConfig, SamplingConfig
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import read_yaml
from vitcapr.stages.decode import DecodeSettings


def mistake(text: str) -> str:
    with pytest.raises(UserError) as error:
        parse(ExperimentConfig, yaml.safe_load(text), "x.yaml")
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("sed: 1", "sed", "seed"),
        ("zzz: 1", "zzz", None),
        ("metrics: {metrics: [cider]}", "metrics.metrics", "metrics.caption"),
        ("figures: {attended: 1}", "figures.attended", "figures.attention_images"),
        ("figures: {attended_words: [dog]}", "figures.attended_words", "figures.attention_words"),
        ("captioners: {big: {backbone: vit, droput: 0.1}}", "captioners.big.droput", "captioners.big.dropout"),
        (
            "captioners: {a: {backbone: vit, training: {phases: [{epochs: 1, max_len: 3}]}}}",
            "captioners.a.training.phases[0].max_len",
            "captioners.a.training.phases[0].max_length",
        ),
        ("data: {flickr8k: {imgs: here}}", "data.flickr8k.imgs", "data.flickr8k.images"),
        (
            "data: {dataset: flickr8k, flickr8k: {images: a, text: b}, limit: 9}",
            "data.limit",
            "data.flickr8k.limit",
        ),
        (
            "captioners: {a: {backbone: vit, training: {epochs: 3}}}",
            "captioners.a.training.epochs",
            "captioners.a.training.phases[0].epochs",
        ),
        (
            "retrievers: {r: {backbone: vit, training: {phases: {epochs: 3, patience: 2}}}}",
            "retrievers.r.training.phases[0].patience",
            "retrievers.r.training.patience",
        ),
        (
            "captioners: {a: {backbone: vit, training: {phases: {epochs: 3, lr: 0.1}}}}",
            "captioners.a.training.phases[0].lr",
            "captioners.a.training.phases[0].learning_rate",
        ),
        ("{beam_size: 3, decodings: {wide: {}}}", "beam_size", "decodings.wide.beam_size"),
        ("{backbone: {v: {source: s}}, captioners: {a: {backbone: vit}}}", "backbone", "backbones"),
        ("decodings: {attention: {beam_size: 3, zzz: 1}}", "decodings.attention.zzz", None),
    ],
)
def test_an_unknown_key_and_the_key_that_was_meant(text: str, key: str, meant: str | None) -> None:
    remedy = f"did you mean '{meant}'?" if meant else "`vitcapr config parameters` lists the keys"
    assert mistake(text) == f"unknown configuration key '{key}' (x.yaml); {remedy}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "captioners: {backbone: vit, training: {phases: {epochs: 3}}}",
            "configuration key 'captioners' holds a definition without a name (x.yaml); "
            "give it one: captioners: {NAME: {backbone: ..., ...}}",
        ),
        (
            "backbones: {mine: folder}",
            "configuration key 'backbones.mine': it must be a section, with keys of its own (x.yaml); "
            'it was "folder"',
        ),
        (
            "captioners: {a: {backbone: vit, training: {phases: {epochs: ten}}}}",
            'captioners.a.training.phases[0].epochs\': it must be a whole number (x.yaml); it was "ten"',
        ),
        (
            "decodings: {beam: {beam_size: 0}}",
            "key 'decodings.beam.beam_size': Input should be greater than or equal to 1 (x.yaml); it was 0",
        ),
        ("run: {captioners: [none]}", "run.captioners names 'none', which is not defined"),
        ("captioners: {attention: {backbone: x}}", "backbone names 'x', which is not defined"),
        ("captioners: {a: {backbone: vit, word_vectors: g}}", "word_vectors names 'g', which is not defined"),
        ("features: {chunk: 64, batch: 48}", "features.batch 48 does not divide features.chunk 64"),
        (
            "captioners: {a: {backbone: vit, training: {phases: {epochs: 1, objective: self_critical}}}}",
            "configuration key 'captioners.a.training': select_by loss would never select an epoch of",
        ),
        ("data: {dataset: flickr8k}", "data.flickr8k.images and data.flickr8k.text must name"),
        ("data: {dataset: coco}", "data.coco.images and either data.coco.annotations"),
        ("decodings: {beam: {beam_size: 2, n_best: 3}}", "n_best 3 is larger than beam_size 2"),
        ("decodings: {beam: {min_length: 9, max_length: 8}}", "min_length 9 is larger than max_length 8"),
        ("decodings: {a: {sampling: {}, beam_size: 3}}", "beam_size needs sampling null (x.yaml)"),
        (
            "captioners: {a: {backbone: vit, training: {phases: {epochs: 1, samples: 3}}}}",
            "phases[0]': samples needs objective self_critical, not cross_entropy",
        ),
        (
            "captioners: {a: {backbone: vit, training: {phases: {epochs: 1, schedule: constant, final_fraction: 0}}}}",
            "final_fraction needs schedule cosine or linear, not constant",
        ),
        ("experiment: ../up", "String should match pattern"),
    ],
)
def test_a_wrong_value_is_one_line(text: str, words: str) -> None:
    assert words in mistake(text)


def test_all_mistakes_are_listed_at_once() -> None:
    values = {"sed": 1, "features": {"chunk": 0}, "captioners": {"a": {}}}
    with pytest.raises(UserError) as error:
        parse(ExperimentConfig, values, "x.yaml")
    assert str(error.value).splitlines() == [
        "3 mistakes:",
        "  configuration key 'features.chunk': Input should be greater than or equal to 1 (x.yaml); it was 0",
        "  configuration key 'captioners.a.backbone': it must be given (x.yaml); "
        'it was {"architecture": "patch_attention"}',
        "  unknown configuration key 'sed' (x.yaml); did you mean 'seed'?",
    ]
    values = {"run": {"captioners": ["no"], "rerankings": ["non"]}}
    with pytest.raises(UserError, match=r"^2 mistakes:\n  run.captioners names 'no'.*\n  run.rerankings names 'non'"):
        parse(ExperimentConfig, values, "x.yaml")


def test_a_key_of_another_architecture_is_a_mistake_that_names_this_architecture() -> None:
    values = {"backbone": "vit", "architecture": "baseline", "heads": 8, "attention_dim": 999, "layers": 7}
    with pytest.raises(UserError) as error:
        parse(ExperimentConfig, {"captioners": {"a": values}}, "x.yaml")
    here = "(x.yaml); here, architecture is baseline"
    assert str(error.value).splitlines() == [
        "3 mistakes:",
        f"  configuration key 'captioners.a.heads' needs architecture transformer {here}",
        f"  configuration key 'captioners.a.attention_dim' needs architecture patch_attention {here}",
        f"  configuration key 'captioners.a.layers' needs architecture transformer {here}",
    ]
    with pytest.raises(UserError, match="'architecture' must be one of 'patch_attention', 'baseline', 'transformer'"):
        parse(ExperimentConfig, {"captioners": {"a": {"backbone": "vit", "architecture": "bas"}}}, "x.yaml")
    with pytest.raises(UserError, match=r"key 'captioners.a.training.phases\[0\].epochs': it must be a whole number"):
        values = {"architecture": "transformer", "backbone": "vit", "training": {"phases": {"epochs": "a"}}}
        parse(ExperimentConfig, {"captioners": {"a": values}}, "x.yaml")


def test_the_settings_of_a_job_have_only_the_keys_of_the_choices() -> None:
    captioner = BaselineConfig(backbone="vit").canonical()
    assert not captioner.keys() & {"heads", "layers", "attention_dim", "scoring", "output_dim"}
    assert not captioner["training"]["phases"][0].keys() & {"samples", "temperature"}
    assert parse(BaselineConfig, captioner, "x.yaml").canonical() == captioner
    sampling = DecodingConfig(sampling=SamplingConfig()).canonical()
    assert "beam_size" not in sampling
    assert "temperature" in sampling["sampling"]


def test_one_phase_needs_no_list() -> None:
    one, listed = (
        parse(PatchAttentionConfig, {"backbone": "vit", "training": {"phases": phases}}, "x.yaml")
        for phases in ({"epochs": 3}, [{"epochs": 3}])
    )
    assert one == listed


def test_only_named_models_are_run() -> None:
    config = parse(ExperimentConfig, {"captioners": {"mine": {"backbone": "vit"}}}, "x.yaml")
    assert config.run.captioners == ["mine"]
    assert config.run.decodings == ["greedy", "beam"]
    assert config.run.retrievers == config.run.rerankings == config.run.finetuned_dual_encoders == []
    config = parse(
        ExperimentConfig,
        {"retrievers": {"a": {"backbone": "vit"}, "b": {"backbone": "vit"}}, "run": {"retrievers": ["b"]}},
        "x.yaml",
    )
    assert config.run.retrievers == ["b"]
    assert config.run.captioners == config.run.decodings == []
    named = {"captioners": {"mine": {"backbone": "vit"}}, "decodings": {"beam": {"length_penalty": 1.0}}}
    config = parse(ExperimentConfig, named, "x.yaml")
    assert config.run.decodings == ["beam"]
    assert (config.decodings["beam"].n_best, config.decodings["beam"].length_penalty) == (5, 1.0)


def test_equal_settings_have_one_spelling() -> None:
    one = parse(
        ExperimentConfig, {"captioners": {"a": {"dropout": 0, "backbone": "vit"}}, "run": {"captioners": ["a"]}}, 1
    )
    two = parse(
        ExperimentConfig, {"run": {"captioners": ["a"]}, "captioners": {"a": {"backbone": "vit", "dropout": 0.0}}}, 1
    )
    assert one.canonical() == two.canonical()


def test_settings_from_text_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"decoding": {"beam_size": 3}}')
    assert parse_settings(DecodeSettings, str(file)) == parse_settings(DecodeSettings, file.read_text())
    with pytest.raises(UserError, match="settings are not valid JSON"):
        parse_settings(DecodeSettings, "{")
    with pytest.raises(UserError, match=r"neither JSON text nor a readable file \(nowhere.json\)"):
        parse_settings(DecodeSettings, "nowhere.json")


GRID = "\ngrid: [{captioners: [attention], vary: {seed: [1, 2]}}]"
WRONG = {
    "infinite": "captioners: {a: {backbone: vit, training: {phases: [{epochs: 1, learning_rate: .inf}]}}}",
    "Python object": "experiment: !!python/object/apply:os.system [ls]",
    "cycle": "data: &a {scenes: *a}",
    "list": "- 1",
    "nothing": "",
    "number as key": "1: 2",
    "list as key": "? [1, 2]\n: 3",
    "date": "experiment: 2020-01-01",
    **{f"{key} is 5": f"{key}: 5" for key in ExperimentConfig.model_fields if key != "seed"},
    **{f"{key} is 5, with a grid": f"{key}: 5{GRID}" for key in ("captioners", "run", "variants")},
    "list of run": "run: {captioners: 5}" + GRID,
    "base of a grid": "grid: [{captioners: [5], vary: {seed: [1]}}]",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_another_kind_of_file_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as error:
        parse(ExperimentConfig, expand_grid(read_yaml(file), file), file)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_one_line(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.yaml").write_bytes("experiment: é\n".encode(encoding))
    with pytest.raises(UserError, match="not YAML in UTF-8"):
        read_yaml(tmp_path / "x.yaml")
    (tmp_path / "x.yaml").write_bytes("experiment: a\n".encode("utf-8-sig"))
    assert read_yaml(tmp_path / "x.yaml") == {"experiment": "a"}


@pytest.mark.parametrize("settings", ['{"a": ' * 100_000, '{"rate": Infinity}'])
def test_settings_of_a_stage_are_bounded(settings: str) -> None:
    with pytest.raises(UserError):
        parse_settings(ExperimentConfig, settings)
