"""The recipes in docs/ are held against what the experiment files of the papers resolve to."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from vitcapr.config.reading import read_yaml
from vitcapr.experiment.experiment import load_experiment
from vitcapr.extensions.papers.setups import value_at

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
    r"|backbones\.[\w-]+\.(kind|patches)|rerankings\.(\w+\.(by|scorer)|reranked\.weighing\..*)"
    r"|captioners\.patch_attention\.output_activation|retrievers\.devise\.temperature"
)
"""Defaults that change no result of a paper's file: execution, the checkpoint's own kind, and settings of a part that
is off: of the sigmoid loss, of a fixed weight, of a layer of width null, of a loss without temperature."""
_OF_MODELS = (
    *("backbones", "text_encoders", "captioners", "retrievers", "finetuned_dual_encoders"),
    *("decodings", "rerankings"),
)
_OF_A_KIND = re.compile(rf"({'|'.join(_OF_MODELS)})\.[\w-]+(\.\d+)?\.")


class Setting(NamedTuple):
    """A setting of a recipe.

    Attributes:
        key: of the resolved configuration; ``*`` stands for every entry of a list.
        why: why it differs, or how an ambiguous sentence was read; empty for what is here as printed.
    """

    key: str
    printed: str
    section: str
    here: str
    why: str


def read_recipe(name: str) -> list[Setting]:
    """The paragraph "As printed: `key` value (section); ..." and the rows of the table of a recipe."""
    page = (REPOSITORY / f"docs/{PAGES[name]}.md").read_text(encoding="utf-8")
    recipe = page.partition(f"<!-- recipe {name} -->")[2].partition(f"<!-- end of recipe {name} -->")[0]
    paragraph = recipe.partition("As printed: ")[2].partition(".\n")[0]
    same = [re.fullmatch(r"`(\S+)` (.*) \((.*)\)", each) for each in paragraph.split("; ")]
    settings = [Setting(each[1], each[2], each[3], each[2], "") for each in same if each]
    assert len(settings) == len(same) > 5
    for line in recipe.splitlines():
        if line.startswith("| `"):
            keys, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
            settings += [Setting(key.strip("`"), *cells) for key in keys.split(", ")]
    return settings


def shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "none"
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


@pytest.fixture(params=PAGES)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("vitcapr.experiment.experiment.problems", lambda _: ())
    return str(request.param)


def resolved(name: str) -> dict[str, Any]:
    return load_experiment(Path("experiments") / f"{name}.yaml").config.canonical()


def test_an_experiment_is_what_the_page_says(name: str) -> None:
    values = resolved(name)
    recipe = read_recipe(name)
    assert {one.key: shown(value_at(values, one.key)) for one in recipe} == {one.key: one.here for one in recipe}


def test_an_experiment_sets_nothing_that_the_table_leaves_out(name: str) -> None:
    keys = {one.key for one in read_recipe(name)}
    leaves = dict.fromkeys(leaf for leaf in _leaves(read_yaml(REPOSITORY / f"experiments/{name}.yaml")))
    shared = re.compile(r"(captioners|retrievers|finetuned_dual_encoders)\.[\w-]+(\.\d+)?\.")
    models = {shared.sub(r"\1.", key) for key in keys}
    untold = [leaf for leaf in leaves if not NO_CLAIM.fullmatch(leaf) and shared.sub(r"\1.", leaf) not in models]
    assert untold == []


def test_the_table_has_the_defaults_that_change_results(name: str) -> None:
    """Of the entries that the file writes; null, false and 0 switch something off, and one row stands for a kind."""
    keys = {_OF_A_KIND.sub(r"\1.", one.key) for one in read_recipe(name)}
    written, values = read_yaml(REPOSITORY / f"experiments/{name}.yaml"), resolved(name)
    unsaid = [
        f"{section}.{entry}.{leaf}"
        for section in _OF_MODELS
        for entry in written.get(section, {})
        for leaf in _leaves(values[section][entry])
        if np.any(np.asarray(value_at(values[section][entry], leaf), object))
        and not NO_CLAIM.fullmatch(f"{section}.{entry}.{leaf}")
        and not INERT.fullmatch(f"{section}.{entry}.{leaf}")
        and f"{section}.{leaf}" not in keys
    ]
    assert unsaid == []


def test_a_row_states_its_source_and_the_reason_for_a_difference(name: str) -> None:
    for one in read_recipe(name):
        assert one.why or one.here == one.printed, one.key
        assert bool(one.section) == (one.printed != "not printed"), one.key


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
