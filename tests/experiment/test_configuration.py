"""config.yaml shows defaults, and the experiments are sound."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from vitcapr.config.base import Section, parse
from vitcapr.config.captioner import PatchAttentionConfig
from vitcapr.config.decoding import DecodingConfig
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.features import TextEncoderConfig
from vitcapr.config.finetuned_dual_encoder import FinetunedDualEncoderConfig, TokenizerConfig
from vitcapr.config.reranking import RerankingConfig
from vitcapr.config.retriever import RetrieverConfig
from vitcapr.config.text import WordVectorsConfig
from vitcapr.experiment.experiment import Experiment, read_yaml

REPOSITORY = Path(__file__).parents[2]
EXPERIMENTS = sorted((REPOSITORY / "experiments").glob("*.yaml"))
DEFAULT = REPOSITORY / "config.yaml"


def test_the_values_of_config_yaml_are_the_defaults() -> None:
    """Of captioners, decodings and retrievers, the entry ``default`` has them."""
    shown = parse(ExperimentConfig, read_yaml(DEFAULT), DEFAULT).canonical()
    default = ExperimentConfig(experiment="demo").canonical()
    named = ("captioners", "decodings", "retrievers", "rerankings", "run")
    assert {k: v for k, v in shown.items() if k not in named} == {k: v for k, v in default.items() if k not in named}
    assert shown["captioners"]["default"] == PatchAttentionConfig(backbone="vit").canonical()
    assert shown["decodings"]["default"] == DecodingConfig().canonical()
    assert shown["retrievers"]["default"] == RetrieverConfig(backbone="vit").canonical()
    assert shown["rerankings"]["reranked"] == RerankingConfig(decoding="beam", retriever="recommended").canonical()
    assert {name: shown["decodings"][name] for name in default["decodings"]} == default["decodings"]
    lists = ("captioners", "decodings", "rerankings", "retrievers", "finetuned_dual_encoders")
    assert {k: v for k, v in shown["run"].items() if k not in lists} == {
        k: v for k, v in default["run"].items() if k not in lists
    }
    assert not any("default" in shown["run"][section] for section in lists)


def examples() -> dict[str, Any]:
    """The definitions that config.yaml shows in comments, by section: lines of ``#   ``, above an empty section."""
    found, block = {}, ""
    for line in DEFAULT.read_text(encoding="utf-8").splitlines():
        if line.startswith("#   "):
            block += line[1:] + "\n"
        elif not line.startswith("#"):
            if block:
                found[line.split(":")[0]] = yaml.safe_load(block)
            block = ""
    return found


@pytest.mark.parametrize(
    ("section", "name", "model", "required"),
    [
        ("text_encoders", "minilm", TextEncoderConfig, ("source",)),
        ("tokenizers", "zh", TokenizerConfig, ("languages",)),
        ("word_vectors", "glove200", WordVectorsConfig, ("path", "dimension")),
        ("finetuned_dual_encoders", "fine_tuned", FinetunedDualEncoderConfig, ("image", "text")),
    ],
)
def test_the_values_of_an_example_in_a_comment_are_the_defaults(
    section: str, name: str, model: type[Section], required: Sequence[str]
) -> None:
    values = examples()[section][name]
    given = {key: values[key] for key in required}
    if section == "finetuned_dual_encoders":
        english, chinese = given["text"].values()
        given["image"] = {"backbone": given["image"]["backbone"]}
        given["text"] = {
            "english": {"source": english["source"]},
            "chinese": {"languages": ["zh"], "tokenizer": chinese["tokenizer"]},
        }
    assert parse(model, values, DEFAULT).canonical() == parse(model, given, DEFAULT).canonical()


def test_equal_configurations_are_equal_however_they_are_written() -> None:
    one = yaml.safe_load("{experiment: x, seed: 1, captioners: {a: {backbone: vit, dropout: 0}}}")
    other = yaml.safe_load("{captioners: {a: {dropout: 0.0, backbone: vit}}, seed: 1, experiment: x}")
    assert repr(parse(ExperimentConfig, one, "").canonical()) == repr(parse(ExperimentConfig, other, "").canonical())


def test_no_figures() -> None:
    values: dict[str, Any] = {"captioners": {"a": {"backbone": "vit"}}, "run": {"captioners": ["a"]}}
    values["experiment"] = "drawn"
    assert Experiment(parse(ExperimentConfig, values, "")).figure_rules
    for none in ("none", {"formats": []}):
        assert not Experiment(parse(ExperimentConfig, {**values, "figures": none}, "")).figure_rules
