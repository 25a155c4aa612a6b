"""config.yaml explains every key, and the experiments are sound."""

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from vitcapr.config.base import Section, parse
from vitcapr.config.captioner import CaptionerConfig
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.reranking import RerankingConfig
from vitcapr.config.retriever import RetrieverConfig
from vitcapr.workflow.configuration import read_yaml
from vitcapr.workflow.experiment import load_experiment

REPOSITORY = Path(__file__).parents[2]
EXPERIMENTS = sorted((REPOSITORY / "experiments").glob("*.yaml"))
DEFAULT = REPOSITORY / "config.yaml"


def missing(values: Any, model: type[Section], where: str = "") -> list[str]:
    """The keys of ``model`` that ``values`` leaves to their defaults.

    Of named definitions and of lists the first entry has to be complete; later ones may rely on it.
    """
    found = []
    for name, field in model.model_fields.items():
        key = f"{where}.{name}".lstrip(".")
        if name not in values:
            found.append(key)
            continue
        sections = [kind for kind in (field.annotation, *get_args(field.annotation)) if is_section(kind)]
        value = values[name]
        if sections and isinstance(value, dict) and not is_section(field.annotation):
            value = next(iter(value.values()), None)
        if sections and isinstance(value, list):
            value = value[0] if value else None
        if sections and value is not None:
            found += missing(value, sections[0], key)
    return found


def is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def test_the_default_configuration_spells_out_every_key() -> None:
    assert missing(read_yaml(DEFAULT), ExperimentConfig) == []


def test_the_check_above_can_fail() -> None:
    values = read_yaml(DEFAULT)
    del values["captioners"]["attention"]["training"]["phases"][0]["schedule"]
    del values["text"]["vocabulary"]["min_count"]
    assert missing(values, ExperimentConfig) == [
        "text.vocabulary.min_count",
        "captioners.training.phases.schedule",
    ]


def test_the_values_of_config_yaml_are_the_defaults() -> None:
    """Of models, the first definition of a section; where a default differs, a comment beside the value states it."""
    shown = parse(ExperimentConfig, read_yaml(DEFAULT), DEFAULT).canonical()
    default = ExperimentConfig().canonical()
    named = ("captioners", "retrievers", "rerankings", "run")
    assert {k: v for k, v in shown.items() if k not in named} == {k: v for k, v in default.items() if k not in named}
    assert shown["captioners"]["attention"] == CaptionerConfig(backbone="vit", scoring="tanh").canonical()
    assert shown["rerankings"]["reranked"] == RerankingConfig(decoding="beam", retriever="recommended").canonical()
    retriever = RetrieverConfig(backbone="vit").canonical()
    retriever["training"]["phases"][0] |= {"epochs": 3, "captions_per_image": 1, "schedule": "step", "step_epochs": 2}
    assert shown["retrievers"]["paper"] == retriever


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_an_experiment_is_sound_and_named_after_its_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("vitcapr.workflow.experiment.Experiment._check", lambda _: None)
    assert load_experiment(file).config.experiment == file.stem


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_an_experiment_opens_with_its_command(file: Path) -> None:
    head = file.read_text(encoding="utf-8").split("experiment:")[0]
    assert f"--configfile experiments/{file.name}" in head


def test_equal_configurations_are_equal_however_they_are_written() -> None:
    one = yaml.safe_load("{seed: 1, captioners: {a: {backbone: vit, dropout: 0}}, run: {captioners: [a]}}")
    other = yaml.safe_load("{run: {captioners: [a]}, captioners: {a: {dropout: 0.0, backbone: vit}}, seed: 1}")
    assert repr(parse(ExperimentConfig, one, "").canonical()) == repr(parse(ExperimentConfig, other, "").canonical())
