"""The experiment files of the papers are held against what the papers print."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.studies.papers.recipes import PrintedSetting, read_recipe, recipe_names, recipe_text
from vitcapr.config.reading import read_yaml
from vitcapr.experiment.experiment import load_experiment
from vitcapr.studies.papers.tables import value_at

REPOSITORY = Path(__file__).parents[3]
PAGES = {
    "vitcap-r-flickr8k": "vitcap-r",
    "vitcap-r-coco": "vitcap-r",
    "blip2-flickr30k": "blip2-flickr30k",
    "bert-vit": "bert-vit",
}
NO_CLAIM = re.compile(
    r"experiment|run\..*|features\..*|data\.dataset|data\.\w+\.(images|text|lists|karpathy)"
    r"|.*\.(backbone|encoder|decoding|revision|image\.pool)"
)
"""Keys of an experiment file that name files and definitions, or say how something is computed."""


INERT = re.compile(
    r"device|.*\.(processes|members|bias)|decodings\.\w+\.(batch_images|min_length|n_best)"
    r"|backbones\.[\w-]+\.(kind|cls|patches)|rerankings\.(\w+\.by|reranked\.weighing\..*)"
    r"|captioners\.patch_attention\.output_activation|retrievers\.devise\.temperature"
)
"""Defaults that change no result of a paper's file: execution, the checkpoint's own kind, and settings of a part that
is off: of the sigmoid loss, of a fixed weight, of a layer of width null, of a loss without temperature."""
_OF_MODELS = (
    *("backbones", "text_encoders", "captioners", "retrievers", "finetuned_dual_encoders"),
    *("decodings", "rerankings"),
)
_OF_A_KIND = re.compile(rf"({'|'.join(_OF_MODELS)})\.[\w-]+(\.\d+)?\.")


@pytest.fixture
def resolved(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("vitcapr.experiment.experiment.problems", lambda _: ())
    return load_experiment(Path("experiments") / f"{request.param}.yaml").config.canonical()


def differs(one: PrintedSetting) -> bool:
    return "here" in one.model_fields_set


def expected(one: PrintedSetting) -> Any:
    """What the experiment file has to resolve to."""
    return one.here if differs(one) else one.printed


def test_every_paper_is_held() -> None:
    assert set(recipe_names()) == PAGES.keys()


@pytest.mark.parametrize(("name", "resolved"), [(name, name) for name in PAGES], indirect=["resolved"])
def test_an_experiment_is_what_its_paper_prints(name: str, resolved: dict[str, Any]) -> None:
    wrong = {
        one.key: (value_at(resolved, one.key), expected(one))
        for one in read_recipe(name).settings
        if value_at(resolved, one.key) != expected(one)
    }
    assert wrong == {}


@pytest.mark.parametrize("name", PAGES)
def test_an_experiment_sets_nothing_that_the_table_leaves_out(name: str) -> None:
    keys = {one.key for one in read_recipe(name).settings}
    leaves = dict.fromkeys(leaf for leaf in _leaves(read_yaml(REPOSITORY / f"experiments/{name}.yaml")))
    shared = re.compile(r"(captioners|retrievers|finetuned_dual_encoders)\.[\w-]+(\.\d+)?\.")
    models = {shared.sub(r"\1.", key) for key in keys}
    untold = [leaf for leaf in leaves if not NO_CLAIM.fullmatch(leaf) and shared.sub(r"\1.", leaf) not in models]
    assert untold == []


@pytest.mark.parametrize(("name", "resolved"), [(name, name) for name in PAGES], indirect=["resolved"])
def test_the_table_has_the_defaults_that_change_results(name: str, resolved: dict[str, Any]) -> None:
    """Of the entries that the file writes; null, false and 0 switch something off, and one row stands for a kind."""
    keys = {_OF_A_KIND.sub(r"\1.", one.key) for one in read_recipe(name).settings}
    written = read_yaml(REPOSITORY / f"experiments/{name}.yaml")
    unsaid = [
        f"{section}.{entry}.{leaf}"
        for section in _OF_MODELS
        for entry in written.get(section, {})
        for leaf in _leaves(resolved[section][entry])
        if np.any(np.asarray(value_at(resolved[section][entry], leaf), object))
        and not NO_CLAIM.fullmatch(f"{section}.{entry}.{leaf}")
        and not INERT.fullmatch(f"{section}.{entry}.{leaf}")
        and f"{section}.{leaf}" not in keys
    ]
    assert unsaid == []


@pytest.mark.parametrize("name", PAGES)
def test_the_docs_show_the_table(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it again with: python -m tests.studies.papers.recipes NAME, between the marks of docs/PAGE.md"""
    monkeypatch.chdir(REPOSITORY)
    assert recipe_text(name) in Path(f"docs/{PAGES[name]}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_a_row_states_its_source_and_the_reason_for_a_difference(name: str) -> None:
    for one in read_recipe(name).settings:
        assert one.why or not differs(one), one.key
        assert not differs(one) or one.here != one.printed, one.key
        assert differs(one) if one.printed == "not printed" else one.where, one.key


def test_a_key_reaches_into_lists_and_names_with_dots() -> None:
    values = {"finetuned_dual_encoders": {"adam_0.01": {"phases": [{"epochs": 1}, {"epochs": 2}]}}}
    assert value_at(values, "finetuned_dual_encoders.adam_0.01.phases.*.epochs") == [1, 2]
    assert value_at(values, "finetuned_dual_encoders.adam_0.01.phases.1.epochs") == 2
    with pytest.raises(KeyError):
        value_at(values, "finetuned_dual_encoders.adam_0.02.phases")


def _leaves(values: Any, where: str = "") -> Iterator[str]:
    """The keys of a file, ``*`` for the entries of a list of mappings."""
    for key, value in values.items():
        path = f"{where}.{key}".lstrip(".")
        if isinstance(value, dict):
            yield from _leaves(value, path)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for entry in value:
                yield from _leaves(entry, f"{path}.*")
        else:
            yield path
