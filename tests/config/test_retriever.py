"""Settings of a retriever that contradict each other are refused."""

from typing import Any

import pytest

from vitcapr.config.base import parse
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.retriever import RetrieverConfig
from vitcapr.errors import UserError
from vitcapr.experiment.selection import Selection
from vitcapr.stages.train_retriever import TrainRetrieverSettings

RAW = {"kind": "features", "encoder": "bert", "head": "none"}


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        ({"text": {"kind": "features"}}, "text.encoder': it must be given"),
        (
            {"text": {"kind": "lstm", "encoder": "bert"}},
            "encoder' needs kind features or features_and_words",
        ),
        (
            {"text": {"kind": "features", "encoder": "bert", "word_vectors": "glove"}},
            "word_vectors' needs kind bag",
        ),
        ({"training": {"queue": 64}}, "queue needs a phase with hard_negatives"),
        ({"image": {"head": "none"}, "text": RAW}, "nothing is learned; set training"),
        ({"image": {"head": "none"}, "training": {"phases": []}}, "a tower has weights to learn"),
        ({"image": {"standardise": True, "pool": "cls_mean"}}, "standardise needs pool cls"),
        ({"augmented_views": ["mirrored", "vit"]}, "'vit' occurs twice in backbone and augmented_views"),
        ({"augmented_views": ["mirrored", "mirrored"]}, "'mirrored' occurs twice in backbone and augmented_views"),
        ({"image": {"head": "mlp", "depth": 2}}, "depth needs head residual"),
        ({"text": {"kind": "lstm", "head": "mlp"}}, "head' needs kind bag or features"),
        ({"text": {"kind": "bag", "standardise": True}}, "standardise' needs kind features or features_and_words"),
        ({"text": {"kind": "bag", "head": "none"}}, "bag learns word embeddings"),
        ({"text": {"kind": "lstm", "word_dropout": 0.1}}, "word_dropout' needs kind bag or features_and_words"),
        ({"image": {"pool": "cls", "queries": 2}}, "queries needs pool attention or attention_mean, not cls"),
        ({"image": {"head": "linear", "hidden_dim": 64}}, "hidden_dim needs head mlp or gated or residual, not linear"),
        ({"training": {"phases": {"epochs": 1, "margin": 0.2}}}, "margin needs objective max_hinge or hinge_rank"),
        (
            {"training": {"phases": {"epochs": 1, "batch_pairs": 8, "batch_images": 4}}},
            "batch_images needs batch",
        ),
        ({"training": {"queue_momentum": 0.9}}, "queue_momentum needs queue"),
        ({"bias": -5.0}, "bias needs a phase with objective sigmoid"),
        (
            {"training": {"phases": [{"epochs": 1, "hard_negatives": "hardest"}], "queue": 8}, "members": 2},
            "queue needs members 1",
        ),
        (
            {"image": {"head": "none"}, "text": RAW, "training": {"phases": []}, "members": 2},
            "nothing is learned; set members to 1",
        ),
        ({"training": {"phases": [{"epochs": 1, "mixup": 0.2}]}}, "mixup needs text kind features"),
        ({"training": {"phases": [{"epochs": 1, "structure": 10.0}]}}, "structure needs text kind features"),
        (
            {
                "text": {"kind": "features_and_words", "encoder": "bert"},
                "training": {"phases": [{"epochs": 1, "hard_negatives": "hardest"}], "queue": 8},
            },
            "queue does not work with text kind features_and_words",
        ),
        (
            {"training": {"phases": [{"epochs": 1, "objective": "hinge_rank", "hard_negatives": "hardest"}]}},
            "hinge_rank uses dot products",
        ),
        ({"training": {"sweep": {"learning_rate": [0.1, 0.1]}}}, "must be above 0 and different"),
        ({"temperature": 0}, "greater than or equal to 0.01"),
        ({"image": {"pools": "cls"}}, "did you mean 'retriever.image.pool'"),
    ],
)
def test_contradictions(retriever: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(TrainRetrieverSettings, {"retriever": {"backbone": "vit", **retriever}}, where="--settings")


VIT = {"source": "vit"}
MIRRORED = {**VIT, "mirror": True}


@pytest.mark.parametrize(
    ("mirrored", "changes", "message"),
    [
        (MIRRORED, {}, None),
        (
            MIRRORED,
            {"retrievers": {"pair": {"backbone": "vit", "augmented_views": ["other"]}}},
            "augmented_views names 'other'",
        ),
        ({"source": "clip"}, {}, "'mirrored' does not use the network and size of 'vit'"),
        ({**MIRRORED, "image_size": 96}, {}, "'mirrored' does not use the network and size of 'vit'"),
        ({"source": "store:0123"}, {}, "'mirrored' does not use the network and size of 'vit'"),
        ({"source": "store:0123", "mirror": True}, {}, "store:0123 holds features"),
        (MIRRORED, {"captioners": {"attention": {"backbone": "mirrored"}}}, "'mirrored' mirrors its pictures"),
    ],
)
def test_views_are_of_one_network_and_for_retrievers(
    mirrored: dict[str, Any], changes: dict[str, Any], message: str | None
) -> None:
    values = {
        "backbones": {"vit": VIT, "mirrored": mirrored},
        "retrievers": {"pair": {"backbone": "vit", "augmented_views": ["mirrored"]}},
        "run": {"retrievers": ["pair"]},
        **changes,
    }
    if message is None:
        assert Selection(parse(ExperimentConfig, values, where="x.yaml")).backbones == ["vit", "mirrored"]
        return
    with pytest.raises(UserError, match=message):
        parse(ExperimentConfig, values, where="x.yaml")


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
    assert "queue_momentum" not in settings["training"]


def test_a_retriever_without_weights_to_learn_has_no_phases() -> None:
    raw = {"backbone": "vit", "image": {"head": "none"}, "text": RAW, "training": {"phases": []}}
    assert not parse(TrainRetrieverSettings, {"retriever": raw}, where="").retriever.learns
    pooled = {**raw, "image": {"head": "none", "pool": "attention"}, "training": {}}
    assert parse(TrainRetrieverSettings, {"retriever": pooled}, where="").retriever.learns


@pytest.mark.parametrize(("own", "used"), [(0, 0), (None, 7)])
def test_a_models_own_seed_comes_before_the_experiments(own: int | None, used: int) -> None:
    assert RetrieverConfig(backbone="vit", seed=own).seed_in(7) == used
