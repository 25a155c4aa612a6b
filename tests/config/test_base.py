"""A mistake in the configuration is one line that names the key and, where there is one, the key that was meant."""

from pathlib import Path

import pytest

from vitcapr.config.base import parse, parse_settings
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.errors import UserError
from vitcapr.stages.decode import DecodeSettings


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"sed": 1}, "unknown configuration key 'sed' (x.yaml); did you mean 'seed'?"),
        (
            {"captioners": {"big": {"backbone": "vit", "droput": 0.1}}},
            "unknown configuration key 'captioners.big.droput' (x.yaml); did you mean 'captioners.big.dropout'?",
        ),
        (
            {"captioners": {"big": {"backbone": "vit", "training": {"phases": [{"epochs": 1, "max_len": 3}]}}}},
            "unknown configuration key 'captioners.big.training.phases.0.max_len' (x.yaml); "
            "did you mean 'captioners.big.training.phases.0.max_length'?",
        ),
        (
            {"data": {"flickr8k": {"imgs": "here"}}},
            "unknown configuration key 'data.flickr8k.imgs' (x.yaml); did you mean 'data.flickr8k.images'?",
        ),
        ({"zzz": 1}, "unknown configuration key 'zzz' (x.yaml); see config.yaml for the keys there are"),
        (
            {"decodings": {"beam": {"beam_size": 0}}},
            "configuration key 'decodings.beam.beam_size': Input should be greater than or equal to 1 (x.yaml); "
            "it was 0",
        ),
    ],
)
def test_one_line(values: dict[str, object], line: str) -> None:
    with pytest.raises(UserError) as error:
        parse(ExperimentConfig, values, "x.yaml")
    assert str(error.value) == line


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"run": {"captioners": ["none"]}}, "run.captioners names 'none', which is not defined"),
        ({"captioners": {"attention": {"backbone": "x"}}}, "backbone names 'x', which is not defined"),
        (
            {"captioners": {"attention": {"backbone": "vit", "word_vectors": "g"}}},
            "word_vectors names 'g', which is not defined",
        ),
        ({"features": {"chunk": 64, "batch": 48}}, "features.batch 48 does not divide features.chunk 64"),
        (
            {
                "captioners": {
                    "a": {"backbone": "vit", "training": {"phases": [{"epochs": 1, "objective": "self_critical"}]}}
                }
            },
            "configuration key 'captioners.a.training': select_by loss would never select an epoch of",
        ),
        ({"data": {"dataset": "flickr8k"}}, "data.flickr8k.images and data.flickr8k.text must name"),
        ({"data": {"dataset": "coco"}}, "data.coco.images and either data.coco.annotations"),
        ({"decodings": {"beam": {"beam_size": 2, "n_best": 3}}}, "n_best 3 is larger than beam_size 2"),
        ({"decodings": {"beam": {"min_length": 9, "max_length": 8}}}, "min_length 9 is larger than max_length 8"),
        ({"experiment": "../up"}, "String should match pattern"),
    ],
)
def test_parts_that_do_not_fit_together(values: dict[str, object], words: str) -> None:
    with pytest.raises(UserError) as error:
        parse(ExperimentConfig, values, "x.yaml")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


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
