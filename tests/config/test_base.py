"""Reading a configuration: several mistakes at once, equal spellings, what is run, other kinds of files."""

import importlib
import pkgutil
import types
from pathlib import Path

import pytest

from vitcapr import config
from vitcapr.config.base import Section
from vitcapr.config.captioner import BaselineConfig, DecodingConfig, SamplingConfig
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.config.reading import parse, read_yaml
from vitcapr.errors import UserError


def test_all_mistakes_are_listed_at_once() -> None:
    values = {"sed": 1, "features": {"chunk": 0}}
    with pytest.raises(UserError) as error:
        parse(ExperimentConfig, values, "x.yaml")
    assert str(error.value).splitlines() == [
        "3 mistakes:",
        "  configuration key 'experiment': it must be given (x.yaml); add it",
        "  configuration key 'features.chunk': it must be greater than or equal to 1 (x.yaml); it was 0",
        "  unknown configuration key 'sed' (x.yaml); did you mean 'seed'?",
    ]
    values = {"experiment": "x", "run": {"captioners": ["no"], "rerankings": ["non"]}}
    with pytest.raises(UserError, match=r"^2 mistakes:\n  run.captioners names 'no'.*\n  run.rerankings names 'non'"):
        parse(ExperimentConfig, values, "x.yaml")


def test_the_settings_of_a_job_have_only_the_keys_of_the_choices() -> None:
    captioner = BaselineConfig(backbone="vit").canonical()
    assert not captioner.keys() & {"heads", "layers", "attention_dim", "scoring", "output_dim"}
    assert not captioner["training"]["phases"][0].keys() & {"samples", "temperature"}
    assert parse(BaselineConfig, captioner, "x.yaml").canonical() == captioner
    sampling = DecodingConfig(sampling=SamplingConfig()).canonical()
    assert "beam_size" not in sampling
    assert "temperature" in sampling["sampling"]


def test_only_named_models_are_run() -> None:
    config = parse(ExperimentConfig, {"experiment": "x", "captioners": {"mine": {"backbone": "vit"}}}, "x.yaml")
    assert config.run.captioners == ["mine"]
    assert config.run.decodings == ["greedy", "beam"]
    assert config.run.retrievers == config.run.rerankings == config.run.finetuned_dual_encoders == []
    two = {"a": {"backbone": "vit"}, "b": {"backbone": "vit"}}
    values = {"experiment": "x", "retrievers": two, "run": {"retrievers": ["b"]}}
    config = parse(ExperimentConfig, values, "x.yaml")
    assert config.run.retrievers == ["b"]
    assert config.run.captioners == config.run.decodings == []
    named = {"captioners": {"mine": {"backbone": "vit"}}, "decodings": {"beam": {"length_penalty": 1.0}}}
    config = parse(ExperimentConfig, {"experiment": "x", **named}, "x.yaml")
    assert config.run.decodings == ["greedy", "beam"]
    assert (config.decodings["beam"].n_best, config.decodings["beam"].length_penalty) == (5, 1.0)


def test_a_decoding_of_the_experiment_is_run_beside_the_built_in_ones() -> None:
    values = {"experiment": "x", "captioners": {"mine": {"backbone": "vit"}}, "decodings": {"wide": {"beam_size": 9}}}
    assert parse(ExperimentConfig, values, "x.yaml").run.decodings == ["greedy", "beam", "wide"]
    values["run"] = {"decodings": ["wide"]}
    assert parse(ExperimentConfig, values, "x.yaml").run.decodings == ["wide"]


@pytest.mark.parametrize(
    ("given", "n_best"), [({"beam_size": 3}, 3), ({"beam_size": 9}, 5), ({"beam_size": 9, "n_best": 8}, 8)]
)
def test_the_built_in_beam_can_be_narrower(given: dict[str, int], n_best: int) -> None:
    values = {"experiment": "x", "captioners": {"mine": {"backbone": "vit"}}, "decodings": {"beam": given}}
    config = parse(ExperimentConfig, values, "x.yaml")
    assert (config.decodings["beam"].n_best, config.run.decodings) == (n_best, ["greedy", "beam"])


def test_a_layer_that_is_left_out_is_no_setting() -> None:
    """So the fingerprints, cards and commands of models without it are those of versions without the key.

    The layers of a store that was pulled are known when it is opened.
    """
    backbones = {"vit": {"source": "vit", "layers": [6, 9]}, "pulled": {"source": "store:somewhere"}}
    models = {"plain": {"backbone": "vit"}, "deep": {"backbone": "vit", "layer": 9}}
    values = {"captioners": models, "retrievers": {"far": {"backbone": "pulled", "layer": 3}, "near": models["plain"]}}
    config = parse(ExperimentConfig, {"experiment": "x", "backbones": backbones, **values}, "x.yaml").canonical()
    settings = {**config["captioners"], **config["retrievers"]}
    assert {name: model["layer"] for name, model in settings.items() if "layer" in model} == {"deep": 9, "far": 3}


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
        parse(ExperimentConfig, expand_grid({"experiment": "x"} | read_yaml(file), file), file)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_another_encoding_is_one_line(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.yaml").write_bytes("experiment: é\n".encode(encoding))
    with pytest.raises(UserError, match="not YAML in UTF-8"):
        read_yaml(tmp_path / "x.yaml")
    (tmp_path / "x.yaml").write_bytes("experiment: a\n".encode("utf-8-sig"))
    assert read_yaml(tmp_path / "x.yaml") == {"experiment": "a"}


@pytest.mark.parametrize(
    ("text", "lines"), [("b:\n  a: {c: 1}\n  a: {c: 2}\n", "2 and 3"), ("{a: 1, a: 2}", "1 and 1")]
)
def test_a_key_that_stands_twice_is_one_line(tmp_path: Path, text: str, lines: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(UserError, match=rf"'a' stands twice in its section, in lines {lines} \(.*x\.yaml\)"):
        read_yaml(tmp_path / "x.yaml")


def test_a_merged_key_may_be_given_again(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("z: &z {a: 0}\nx: {y: &y {<<: *z, a: 1}}\nw: {<<: *y, a: 2}\n")
    assert read_yaml(tmp_path / "x.yaml") == {"z": {"a": 0}, "x": {"y": {"a": 1}}, "w": {"a": 2}}


TRANSPORT = {
    *("canonical", "user_files", "values", "to", "from_config"),  # what makes the settings of a job, and passes them on
    *("located", "of", "seeded", "caption_in"),  # read by from_config alone: their results are part of the settings
    *("dataset", "keys", "resampling"),  # a section with its name, and values named as the arguments that they become
    # Of a part, whose module counts; the base only declares them.
    *("start_bias", "loss", "draw", "build", "described", "scores"),
    # What checks, the workflow and people read.
    *("missing", "known_languages", "start_chain", "is_adopted", "same_network", "learns", "languages", "without"),
    *("system", "arrays", "needed_arrays", "attends", "text_encoder", "method", "size_line", "image_counts"),
    *("model_post_init", "image_root", "examples_of", "attended", "libraries", "check_patches"),
}


def test_sections_hold_values() -> None:
    """The configuration is no part of a job's code. What computes a result from its values stands elsewhere."""
    members = set()
    for module in pkgutil.iter_modules(config.__path__):
        for section in vars(importlib.import_module(f"vitcapr.config.{module.name}")).values():
            if isinstance(section, type) and issubclass(section, Section) and section.__module__.endswith(module.name):
                members |= {
                    name
                    for name, value in vars(section).items()
                    if isinstance(value, property | classmethod | types.FunctionType) and not name.startswith("_")
                }
    assert members <= TRANSPORT
