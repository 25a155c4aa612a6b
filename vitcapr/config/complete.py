"""What an experiment that names little means: definitions that always exist, and the lists of ``run``."""

from collections.abc import Mapping
from typing import Any

BUILT_IN: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "backbones": {"vit": {"source": "trained"}},
    "decodings": {"greedy": {"beam_size": 1}, "beam": {"beam_size": 5, "n_best": 5, "attention": True}},
}
"""Definitions that every experiment has. An experiment that names one of them changes only the keys that it gives."""

LISTED = ("captioners", "retrievers", "finetuned_dual_encoders", "rerankings", "alignments")
"""The sections whose definitions are run unless ``run`` lists others."""


def complete(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a configuration with the built-in definitions, and with the lists of ``run``.

    A list that ``run`` does not hold has all definitions that the experiment names itself. Decodings that nobody names
    are the built-in ones if a captioner is run. What has the wrong type stays as it is, and the validation refuses it.
    """
    named = {section: _names(values.get(section)) for section in (*LISTED, "decodings")}
    completed = dict(values)
    for section, definitions in BUILT_IN.items():
        given = values.get(section)
        if given is None or isinstance(given, Mapping):
            completed[section] = _merged(definitions, given or {})
    run = values.get("run")
    if run is None or isinstance(run, Mapping):
        lists: dict[str, Any] = {section: named[section] for section in LISTED}
        lists |= run or {}
        if "decodings" not in lists:
            lists["decodings"] = (named["decodings"] or list(BUILT_IN["decodings"])) if lists["captioners"] else []
        completed["run"] = lists
    return completed


def _names(section: Any) -> list[str]:
    return list(section) if isinstance(section, Mapping) else []


def _merged(below: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions of both; a definition of both has the keys of both, and the given one decides."""
    both = {name: {**below[name], **own} for name, own in given.items() if name in below and isinstance(own, Mapping)}
    return {**below, **given, **both}
