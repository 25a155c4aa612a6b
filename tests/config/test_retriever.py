"""The settings of a retriever."""

from types import SimpleNamespace

import pytest

from vitcapr.config.base import parse
from vitcapr.config.retriever import RetrieverConfig
from vitcapr.stages.train_retriever import TrainRetrieverSettings

RAW = {"kind": "features", "encoder": "bert", "head": "none"}


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
