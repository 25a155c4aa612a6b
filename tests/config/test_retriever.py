"""The settings of a retriever."""

from types import SimpleNamespace

import pytest

from vitcapr.config.base import parse
from vitcapr.config.retriever import RetrieverConfig
from vitcapr.stages.train_retriever import TrainRetrieverSettings

RAW = {"kind": "features", "encoder": "bert", "head": "none"}


def test_the_defaults_are_the_fast_recipe() -> None:
    retriever = parse(TrainRetrieverSettings, {"retriever": {"backbone": "vit"}}, where="--settings").retriever
    assert (retriever.image.pool, retriever.text.kind) == ("cls_mean", "bag")
    assert retriever.image.head == retriever.text.head == "residual"
    assert retriever.learn_temperature


@pytest.mark.parametrize("kind", ["lstm", "bag"])
def test_settings_hold_the_keys_of_their_choices_alone(kind: str) -> None:
    """So that a key of another choice changes no fingerprint, and the settings of a job are read again as they are."""
    retriever = parse(RetrieverConfig, {"backbone": "vit", "text": {"kind": kind}}, where="")
    settings = retriever.canonical()
    assert parse(RetrieverConfig, settings, where="") == retriever
    assert ("head" in settings["text"], "pool" in settings["text"]) == (kind == "bag", kind == "lstm")
    assert not {"margin", "gamma", "structure_levels"} & settings["training"]["phases"][0].keys()
    assert not {"queries", "standardise"} & settings["image"].keys()


def test_a_retriever_without_weights_to_learn_has_no_phases() -> None:
    raw = {"backbone": "vit", "image": {"head": "none"}, "text": RAW, "training": {"phases": []}}
    assert not parse(TrainRetrieverSettings, {"retriever": raw}, where="").retriever.learns
    pooled = {**raw, "image": {"head": "none", "pool": "attention"}, "training": {}}
    assert parse(TrainRetrieverSettings, {"retriever": pooled}, where="").retriever.learns


@pytest.mark.parametrize(("own", "used"), [(0, 0), (None, 7)])
def test_a_models_own_seed_comes_before_the_experiments(own: int | None, used: int) -> None:
    assert settings_of(own).seed == used


def test_an_own_seed_that_is_the_experiments_is_no_other_training() -> None:
    assert settings_of(7).canonical() == settings_of(None).canonical()
    assert settings_of(8).canonical() != settings_of(None).canonical()


def settings_of(own: int | None) -> TrainRetrieverSettings:
    """Those of a job of an experiment with seed 7."""
    config = SimpleNamespace(seed=7, retrievers={"r": RetrieverConfig(backbone="vit", seed=own)})
    return TrainRetrieverSettings.from_config(config, SimpleNamespace(retriever="r"))
