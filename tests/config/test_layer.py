"""``layer`` and patches of a captioner or a retriever are among what its backbone stores."""

import re
from typing import Any

import pytest
import yaml

from vitcapr.config.base import parse
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.errors import UserError

BACKBONES = {
    "vit": {"source": "vit", "layers": [6, 9]},
    "mirrored": {"source": "vit", "mirror": True},
    "plain": {"source": "vit"},
    "pulled": {"source": "store:somewhere"},
    "cls": {"source": "vit", "patches": "none"},
}


def experiment(**models: Any) -> ExperimentConfig:
    return parse(ExperimentConfig, {"backbones": BACKBONES, "decodings": {"greedy": {}}, **models}, where="x.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "captioners: {a: {backbone: vit, layer: 7}}",
            "name it in backbones.vit.layers, which has [6, 9]",
        ),
        ("retrievers: {a: {backbone: plain, layer: 6}}", "backbones.plain.layers, which has none"),
        (
            "retrievers: {a: {backbone: vit, layer: 6, augmented_views: [mirrored]}}",
            "backbones.mirrored.layers",
        ),
        (
            "captioners: {a: {backbone: vit}, b: {backbone: vit, layer: 6, start_from: a}}",
            "uses another layer",
        ),
        ("captioners: {a: {backbone: vit, layer: 0}}", "greater than or equal to 1"),
        ("captioners: {a: {backbone: cls}}", "captioners.a reads patches; set backbones.cls.patches"),
        ("retrievers: {a: {backbone: cls}}", "retrievers.a.image.pool: cls_mean reads patches"),
    ],
)
def test_models_read_what_the_backbone_stores(text: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        experiment(**yaml.safe_load(text))


def test_layers_that_are_stored_or_will_be_looked_up() -> None:
    """The layers of a store that was pulled are known when it is opened."""
    experiment(captioners={"a": {"backbone": "vit", "layer": 9}, "b": {"backbone": "pulled", "layer": 3}})


def test_a_layer_that_is_left_out_is_no_setting() -> None:
    """So the fingerprints, cards and commands of models without it are those of versions without the key."""
    config = experiment(
        captioners={"a": {"backbone": "vit"}, "b": {"backbone": "vit", "layer": 9}},
        retrievers={"c": {"backbone": "vit"}, "d": {"backbone": "vit", "layer": 9}},
    ).canonical()
    settings = {**config["captioners"], **config["retrievers"]}
    assert {name: values.get("layer", "none") for name, values in settings.items()} == {
        "a": "none",
        "b": 9,
        "c": "none",
        "d": 9,
    }
