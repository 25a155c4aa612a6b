"""``layer`` and patches of a captioner or a retriever are among what its backbone stores."""

from typing import Any

from vitcapr.config.base import parse
from vitcapr.config.experiment import ExperimentConfig

BACKBONES = {
    "vit": {"source": "vit", "layers": [6, 9]},
    "mirrored": {"source": "vit", "mirror": True},
    "plain": {"source": "vit"},
    "pulled": {"source": "store:somewhere"},
    "cls": {"source": "vit", "patches": "none"},
}


def experiment(**models: Any) -> ExperimentConfig:
    values = {"experiment": "x", "backbones": BACKBONES, "decodings": {"greedy": {}}, **models}
    return parse(ExperimentConfig, values, where="x.yaml")


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
