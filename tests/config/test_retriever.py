"""Settings of a retriever that contradict each other are refused."""

from typing import Any

import pytest

from vitcapr.config.base import parse
from vitcapr.config.retriever import TrainRetrieverSettings
from vitcapr.errors import UserError


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        ({"text": {"kind": "features"}}, "needs encoder"),
        ({"text": {"kind": "lstm", "encoder": "bert"}}, "encoder is for kind features"),
        ({"text": {"kind": "features", "encoder": "bert", "word_vectors": "glove"}}, "word_vectors are for kinds"),
        ({"training": {"queue": 64}}, "queue is for hard negatives"),
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
