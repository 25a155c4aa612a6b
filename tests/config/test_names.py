"""A name of the configuration is a folder, a wildcard and a word of a command: what could be more is refused."""

import copy
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.config.base import Section, parse
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.config.names import check_name
from vitcapr.errors import UserError

HOSTILE = (
    *("x;touch PWNED;y", "g$(touch PWNED)", "`touch PWNED`", "a|b", "a>b", "a&b", "'", '"', "*", "~", "#a", "a=b"),
    *("../../../escape", "..", ".", ".hidden", "/etc", "a/b", "a\\b", "-rf", "--yes", "", " ", "a b", "a\nb", "a\n"),
    *(
        "{wildcards}",
        "{",
        "a\0b",
        "a\x1b[31m",
        "\u202ea",
        "\u0430ttention",
        "vit\u200b",
        "e\u0301",
        "\ud800",
        "n" * 101,
    ),
)
BACKBONE = {"source": "google/vit"}
TOWER = {"source": "bert"}
MATCHER = {"image": {"backbone": "vit"}, "text": {"tower": TOWER}}
DEFAULT = ExperimentConfig().canonical()
NAMED: dict[str, Any] = {
    "word_vectors": {"path": "glove.txt"},
    "backbones": BACKBONE,
    "captioners": {"backbone": "vit"},
    "decodings": {},
    "text_encoders": {"source": "bert"},
    "retrievers": {"backbone": "vit"},
    "tokenizers": {},
    "finetuned_dual_encoders": MATCHER,
    "rerankings": {"decoding": "beam", "by": "oracle"},
    "variants": {},
}


def placed(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where a configuration gives a name, and a configuration that gives this one there."""
    for section, definition in NAMED.items():
        run = {"run": {"rerankings": []}} if section == "rerankings" else {}
        yield section, {**run, section: {**DEFAULT[section], name: copy.deepcopy(definition)}}
    yield "variants of", {"variants": {"captioners": {name: {"of": "attention", "vary": {}}}}}
    yield "variants.of", {"variants": {"captioners": {"a": {"of": name, "vary": {}}}}}
    yield "variants.vary", {"variants": {"captioners": {"a": {"of": "attention", "vary": {"seed": f"/{name}"}}}}}
    yield "experiment", {"experiment": name}
    yield "text.language", {"text": {"language": name}}
    yield "run.loss_curves", {"run": {"loss_curves": {name: []}}}
    yield "run.paper", {"run": {"paper": name}}
    yield "finetuned_dual_encoders.text", {"finetuned_dual_encoders": {"m": {**MATCHER, "text": {name: TOWER}}}}
    yield (
        "finetuned_dual_encoders.languages",
        {"finetuned_dual_encoders": {"m": {**MATCHER, "text": {"tower": {**TOWER, "languages": [name]}}}}},
    )
    yield "tokenizers.languages", {"tokenizers": {"t": {"languages": [name]}}}


@pytest.mark.parametrize("where", [where for where, _ in placed("")])
@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_hostile_name_is_refused_in_one_line(name: str, where: str) -> None:
    with pytest.raises(UserError) as error:
        parse(ExperimentConfig, dict(placed(name))[where], "x.yaml")
    assert str(error.value).isprintable()


@pytest.mark.parametrize("where", [where for where, _ in placed("") if where not in ("variants.vary", "run.paper")])
def test_the_check_above_fails_by_the_name_alone(where: str) -> None:
    name = "sound_1-b" if where == "experiment" else "sound_1.5-b"
    parse(ExperimentConfig, dict(placed(name))[where], where)


@pytest.mark.parametrize(("key", "name"), [("vary", "x;y"), ("captioners", "../a")])
def test_a_grid_makes_no_hostile_name(key: str, name: str) -> None:
    base = name if key == "captioners" else "a"
    values = {
        "captioners": {base: {"backbone": "vit"}},
        "grid": [{"captioners": [base], "vary": {"word_vectors": [name if key == "vary" else "b"]}}],
    }
    with pytest.raises(UserError, match="would name a variant"):
        expand_grid(values, "x.yaml")


@pytest.mark.parametrize("name", ["stores", "result_cache", "Stores", "RESULT_CACHE"])
def test_an_experiment_is_not_called_as_what_lies_beside_it(name: str) -> None:
    with pytest.raises(UserError, match="reserved name"):
        parse(ExperimentConfig, {"experiment": name}, "x.yaml")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"retrievers": {"untrained": NAMED["retrievers"]}}, "reserved name"),
        ({"captioners": {"retrieval": NAMED["captioners"]}}, "reserved name"),
        ({"retrievers": {"m": NAMED["retrievers"], "m-query_bank": NAMED["retrievers"]}}, "the name 'm-query_bank'"),
        (
            {
                "retrievers": {"m-zh": NAMED["retrievers"]},
                "finetuned_dual_encoders": {"m": {**MATCHER, "text": {"tower": {**TOWER, "languages": ["en", "zh"]}}}},
            },
            "have the name 'm-zh'",
        ),
        (
            {
                "captioners": {"a": NAMED["captioners"], "a.b": NAMED["captioners"]},
                "decodings": {"b.c": {}, "c": {}},
                "run": {"captioners": ["a", "a.b"], "decodings": ["b.c", "c"]},
            },
            "have the name 'a.b.c'",
        ),
    ],
)
def test_two_things_do_not_share_files(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse(ExperimentConfig, values, "x.yaml")


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
