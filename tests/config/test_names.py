"""A name of the configuration is a folder, a wildcard and a word of a command: what could be more is refused.

Every spelling of a path is the same value.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.config.base import Section, check_name, one_spelling
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.features import BackboneConfig
from vitcapr.config.reading import parse
from vitcapr.errors import UserError

HOSTILE = (
    *("x;touch PWNED;y", "g$(touch PWNED)", "`touch PWNED`", "a|b", "a>b", "a&b", "'", '"', "*", "~", "#a", "a=b"),
    *("../../../escape", "..", ".", ".hidden", "/etc", "a/b", "a\\b", "-rf", "--yes", "", " ", "a b", "a\nb", "a\n"),
    *("{wildcards}", "{", "a\0b", "a\x1b[31m", "\u202ea"),
    *("\u0430ttention", "vit\u200b", "e\u0301", "\ud800", "n" * 101),
)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_hostile_name_is_refused_in_one_line(name: str) -> None:
    """The other names of a configuration have the type of one of these."""
    with pytest.raises(ValueError, match="a name has 1 to 100 letters"):
        check_name(name)
    for values in (
        {"experiment": name},
        {"text": {"language": name}},
        {"captioners": {name: {"backbone": "vit"}}},
        {"retrievers": {name: {"backbone": "vit"}}},
        {"variants": {"captioners": {"a": {"of": "attention", "vary": {"seed": f"/{name}"}}}}},
        {"tokenizers": {"t": {"languages": [name]}}},
    ):
        with pytest.raises(UserError) as error:
            parse(ExperimentConfig, {"experiment": "x", **values}, "x.yaml")
        assert str(error.value).isprintable()


def test_every_key_that_is_a_name_is_checked() -> None:
    """The keys of ``vary`` are paths of settings, and a grid checks the names that it makes of their values."""
    unchecked = [
        key
        for key, kind in dictionaries(ExperimentConfig)
        if not is_name(kind) and get_origin(kind) is not Literal and key != "vary"
    ]
    assert unchecked == []


def dictionaries(model: type[Section]) -> Iterator[tuple[str, Any]]:
    """Every field below ``model`` that is a dictionary, and the type of its keys."""
    for key, field in model.model_fields.items():
        waiting = [field.annotation]
        while waiting:
            kind = waiting.pop()
            if get_origin(kind) is dict:
                yield key, get_args(kind)[0]
            if isinstance(kind, type) and issubclass(kind, Section):
                yield from dictionaries(kind)
            waiting += get_args(kind)


def is_name(kind: Any) -> bool:
    return any(getattr(check, "func", None) is check_name for check in getattr(kind, "__metadata__", ()))


@given(st.text(max_size=120))
def test_a_name_that_passes_is_one_word_of_a_shell_and_one_folder(name: str) -> None:
    try:
        check_name(name)
    except ValueError:
        return
    assert name.isascii()
    assert set(name.lower()) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-")
    assert name[0] not in ".-"


def test_spellings_of_one_path_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    spellings = ["x/y", "./x/y", "x//y/", f"{tmp_path}/x/y", f"{tmp_path}/./x/y/"]
    assert {one_spelling(path) for path in spellings} == {"x/y"}
    assert one_spelling("~/x") == "home/x"
    assert one_spelling("/data/x/") == "/data/x"
    assert BackboneConfig(source="store:./x/").source == "store:x"


@pytest.mark.parametrize("name", ["", "google/vit-base", "trained", "hf://a//b", "../x", "link/../x"])
def test_names_that_are_no_other_spelling_stay(name: str) -> None:
    assert one_spelling(name) == name
