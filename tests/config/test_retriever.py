"""Settings of a retriever that contradict each other are refused."""

from typing import Any

import pytest

from vitcapr.config.base import parse
from vitcapr.config.retriever import TrainRetrieverSettings
from vitcapr.errors import UserError

RAW = {"kind": "features", "encoder": "bert", "head": "none"}


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        ({"text": {"kind": "features"}}, "needs encoder"),
        ({"text": {"kind": "lstm", "encoder": "bert"}}, "encoder is for kinds features"),
        ({"text": {"kind": "features", "encoder": "bert", "word_vectors": "glove"}}, "word_vectors are for kinds"),
        ({"training": {"queue": 64}}, "queue is for hard negatives"),
        ({"image": {"head": "none"}, "text": RAW}, "nothing to learn; write training"),
        ({"image": {"head": "none"}, "training": {"phases": []}}, "a tower has weights to learn"),
        ({"image": {"standardise": True, "pool": "cls_mean"}}, "standardise is for pool cls"),
        ({"image": {"head": "mlp", "depth": 2}}, "depth is for head residual"),
        ({"text": {"head": "mlp"}}, "head and standardise are for kinds features"),
        ({"training": {"phases": [{"epochs": 1, "mixup": 0.2}]}}, "mixup is for text of kind features"),
        (
            {
                "text": {"kind": "features_and_words", "encoder": "bert"},
                "training": {"phases": [{"epochs": 1, "hard_negatives": "hardest"}], "queue": 8},
            },
            "a queue is for text that is either",
        ),
        ({"training": {"sweep": {"learning_rate": [0.1, 0.1]}}}, "each stands there once"),
        ({"temperature": 0}, "greater than or equal to 0.01"),
        ({"image": {"pools": "cls"}}, "did you mean 'retriever.image.pool'"),
    ],
)
def test_contradictions(retriever: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(TrainRetrieverSettings, {"retriever": {"backbone": "vit", **retriever}}, where="--settings")


def test_the_defaults_are_the_papers_pair() -> None:
    retriever = parse(TrainRetrieverSettings, {"retriever": {"backbone": "vit"}}, where="--settings").retriever
    assert (retriever.image.pool, retriever.image.head, retriever.text.kind) == ("cls", "linear", "lstm")
    assert (retriever.text.pool, retriever.text.hidden_dim, retriever.embedding_dim) == ("last", 256, 256)
    assert not retriever.learn_temperature


def test_what_learns_nothing_has_no_phases() -> None:
    raw = {"backbone": "vit", "image": {"head": "none"}, "text": RAW, "training": {"phases": []}}
    assert not parse(TrainRetrieverSettings, {"retriever": raw}, where="").retriever.learns
    pooled = {**raw, "image": {"head": "none", "pool": "attention"}, "training": {}}
    assert parse(TrainRetrieverSettings, {"retriever": pooled}, where="").retriever.learns


def test_a_retrievers_own_seed_comes_before_the_experiments() -> None:
    own = parse(TrainRetrieverSettings, {"retriever": {"backbone": "vit", "seed": 0}, "seed": 7}, where="")
    assert own.own_seed == 0
    assert parse(TrainRetrieverSettings, {"retriever": {"backbone": "vit"}, "seed": 7}, where="").own_seed == 7
