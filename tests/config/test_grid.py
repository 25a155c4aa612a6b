"""What a grid makes of a configuration, and that a mistake in it is one line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid, variant_name
from vitcapr.config.reading import parse
from vitcapr.errors import UserError

RETRIEVERS = {"linear": {"backbone": "vit"}, "mlp": {"backbone": "vit", "seed": 3}, "raw": {"backbone": "vit"}}


def expanded(*grid: dict[str, Any], run: list[str] | None = None) -> dict[str, Any]:
    run = ["raw", "linear", "mlp"] if run is None else run
    return expand_grid({"retrievers": RETRIEVERS, "run": {"retrievers": run}, "grid": list(grid)}, "mine.yaml")


def test_variants_of_the_seed_replace_their_base() -> None:
    values = expanded({"retrievers": ["linear", "mlp"], "vary": {"seed": [0, 1]}})
    assert values["run"]["retrievers"] == ["raw", "linear-seed0", "linear-seed1", "mlp-seed0", "mlp-seed1"]
    assert values["retrievers"]["mlp-seed1"] == {"backbone": "vit", "seed": 1}
    assert values["retrievers"]["mlp"] == RETRIEVERS["mlp"]
    assert values["variants"]["retrievers"]["linear-seed0"] == {"of": "linear", "vary": {"seed": 0}}
    assert "grid" not in values


def test_the_given_values_are_not_changed() -> None:
    expanded({"retrievers": ["linear"], "vary": {"training.pairs": [1]}})
    assert RETRIEVERS["linear"] == {"backbone": "vit"}


def test_all_combinations_with_dotted_keys() -> None:
    values = expanded({"retrievers": ["mlp"], "vary": {"training.pairs": [500, None], "seed": [0, 1]}}, run=["mlp"])
    names = ["mlp-pairs500-seed0", "mlp-pairs500-seed1", "mlp-pairsnone-seed0", "mlp-pairsnone-seed1"]
    assert values["run"]["retrievers"] == names
    assert values["retrievers"][names[0]] == {"backbone": "vit", "seed": 0, "training": {"pairs": 500}}
    checked = parse(ExperimentConfig, {"experiment": "x", "variants": values["variants"]}, "")
    assert checked.variants["retrievers"][names[1]].without("seed") == "mlp-pairs500"


def test_a_second_entry_adds_to_the_first_and_a_variant_has_variants() -> None:
    values = expanded(
        {"retrievers": ["linear"], "vary": {"seed": [0]}},
        {"retrievers": ["linear"], "vary": {"training.pairs": [5]}},
        {"retrievers": ["linear-pairs5"], "vary": {"seed": [0, 1]}},
        run=["linear", "raw"],
    )
    assert values["run"]["retrievers"] == ["linear-seed0", "linear-pairs5-seed0", "linear-pairs5-seed1", "raw"]
    made = values["variants"]["retrievers"]["linear-pairs5-seed1"]
    assert made == {"of": "linear", "vary": {"training.pairs": 5, "seed": 1}}


def test_a_model_that_is_not_run_can_be_selected_by_the_name_of_its_variant() -> None:
    values = expanded({"retrievers": ["linear"], "vary": {"seed": [0, 1]}}, run=["linear-seed1"])
    assert values["run"]["retrievers"] == ["linear-seed1"]


def test_lists_are_reached_by_number() -> None:
    phases = {"training": {"phases": [{"epochs": 2}, {"epochs": 3}]}}
    values = {"retrievers": {"a": phases}, "grid": [{"retrievers": ["a"], "vary": {"training.phases.1.epochs": [9]}}]}
    made = expand_grid(values, "")["retrievers"]["a-epochs9"]
    assert made["training"]["phases"] == [{"epochs": 2}, {"epochs": 9}]


def test_those_of_one_entry_start_from_one_another() -> None:
    values = {
        "captioners": {"first": {"backbone": "vit"}, "then": {"backbone": "vit", "start_from": "first"}},
        "grid": [{"captioners": ["first", "then"], "vary": {"seed": [4]}}],
    }
    assert expand_grid(values, "")["captioners"]["then-seed4"]["start_from"] == "first-seed4"
    alone = {**values, "grid": [{"captioners": ["then"], "vary": {"seed": [4]}}]}
    assert expand_grid(alone, "")["captioners"]["then-seed4"]["start_from"] == "first"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"retrievers": ["liner"], "vary": {"seed": [0]}}, "'liner', which is not defined .* did you mean 'linear'"),
        ({"retriever": ["linear"], "vary": {"seed": [0]}}, "unknown configuration key 'retriever' .* 'retrievers'"),
        ({"retrievers": ["linear"]}, "key 'vary': it must be given"),
        ({"retrievers": ["linear"], "vary": {}}, "key 'vary'"),
        ({"retrievers": ["linear"], "vary": {"seed": []}}, "grid.0.vary.seed: no value"),
        ({"retrievers": ["linear"], "vary": {"seed": [1, 1]}}, "grid.0.vary.seed: a value is there twice"),
        ({"retrievers": ["linear"], "vary": {"backbone": ["google/vit"]}}, "would name a variant"),
        ({"retrievers": ["linear"], "vary": {"backbone.name": ["a"]}}, "grid.0.vary.backbone.name names no setting"),
        ({"vary": {"seed": [0]}}, "grid.0 multiplies nothing"),
    ],
)
def test_mistakes(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        expanded(entry)
    assert "mine.yaml" in str(raised.value)


def test_the_same_variant_twice_is_refused() -> None:
    entry = {"retrievers": ["linear"], "vary": {"seed": [0]}}
    with pytest.raises(UserError, match="makes 'linear-seed0', which is already defined"):
        expanded(entry, entry)


@given(st.lists(st.sampled_from(["a", "b.c", "d.0.e"]), min_size=1, unique=True), st.integers(0, 10**9))
def test_the_name_of_a_variant_has_every_varied_setting(keys: list[str], value: int) -> None:
    name = variant_name("base", dict.fromkeys(keys, value))
    assert name.split("-") == ["base", *(f"{key.split('.')[-1]}{value}" for key in keys)]
