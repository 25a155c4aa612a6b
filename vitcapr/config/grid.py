"""Grid expansion: one definition becomes several variants that differ in the given settings."""

import copy
import itertools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Name, Section, check_name
from vitcapr.config.dual_encoder import ranked_sections
from vitcapr.config.reading import parse
from vitcapr.errors import UserError, did_you_mean
from vitcapr.loader import extend_section, sections_to_run

Scalar = bool | int | float | str | None

_FOLLOWED = "start_from"
"""The key with which a definition names another one of its section."""


class GridConfig(Section):
    """Definitions to multiply and the settings to vary. All combinations are made."""

    captioners: list[str] = []
    retrievers: list[str] = []
    decodings: list[str] = []
    vary: dict[str, list[Scalar]] = Field(min_length=1)
    """Values of each setting, by its key in the definition; dots lead into sections (training.learning_rate)."""


class VariantConfig(Section):
    """The origin of a variant; filled in by the grid."""

    of: Name
    """Name of the definition that it was made from."""
    vary: dict[str, Scalar]
    """The settings that the grid gave it, by key."""

    @model_validator(mode="after")
    def _names_are_sound(self) -> Self:
        check_name(variant_name(self.of, self.vary))
        return self

    def without(self, key: str) -> str:
        """Return the name that it would have if ``key`` did not vary; averages over seeds have this name."""
        return variant_name(self.of, {name: value for name, value in self.vary.items() if name != key})


if not TYPE_CHECKING:
    GridConfig = extend_section("Grid", GridConfig)


KINDS = tuple(name for name in GridConfig.model_fields if name != "vary")
"""The sections that a grid can multiply. They are also lists of ``run``."""


def variant_name(base: str, settings: Mapping[str, Scalar]) -> str:
    """Name a variant: ``mlp`` with ``training.pairs: 500`` and ``seed: 1`` gives ``mlp-pairs500-seed1``."""
    return "-".join([base, *(f"{key.rpartition('.')[2]}{_spelled(value)}" for key, value in settings.items())])


def expand_grid(values: Mapping[str, Any], where: object) -> dict[str, Any]:
    """Return the configuration without ``grid``, and with the variants beside their base definitions.

    In the lists of ``run`` the variants replace their base. If ``run`` does not list the base, it may list variants by
    name. ``variants`` records the origin of every variant. If a definition starts from another one of the same grid
    entry, its variant starts from the corresponding variant.

    Raises:
        UserError: a name or a key is invalid, or two variants have the same name.
    """
    expanded = copy.deepcopy(complete(values))
    entries = expanded.pop("grid", None) or []
    if not isinstance(entries, list):
        raise UserError("configuration key 'grid': a grid is a list", where=where, remedy="begin each entry with '- '")
    for section in (*KINDS, "run", "variants") if entries else ():
        given = expanded.get(section) or {}
        parts = given.values() if section == "variants" and isinstance(given, dict) else ()
        if not all(isinstance(part, dict) for part in (given, *parts)):
            what = f"configuration key '{section}': it is a mapping of keys to values"
            raise UserError(what, where=where, remedy="correct the configuration")
    for number, entry in enumerate(entries):
        key = f"grid.{number}"
        parsed = parse(GridConfig, entry, f"{where}: {key}")
        try:
            _expand_entry(expanded, parsed, key)
        except UserError as error:
            raise UserError(error.what, where=where, remedy=error.remedy) from error
    return expanded


def _expand_entry(values: dict[str, Any], entry: GridConfig, key: str) -> None:
    if not any(getattr(entry, kind) for kind in KINDS):
        raise UserError(f"{key} multiplies nothing", remedy=f"list {' or '.join(KINDS)} in it")
    for setting, choices in entry.vary.items():
        if not choices or len(set(map(_spelled, choices))) < len(choices):
            what = f"{key}.vary.{setting}: {'no value' if not choices else 'a value is there twice'}"
            raise UserError(what, remedy="give each value once")
    settings = [dict(zip(entry.vary, chosen, strict=True)) for chosen in itertools.product(*entry.vary.values())]
    for kind in KINDS:
        together = getattr(entry, kind)
        definitions = values.get(kind) or {}
        for base in together:
            if base not in definitions:
                remedy = did_you_mean(base, definitions, f"there are {', '.join(sorted(definitions))}")
                raise UserError(f"{key} names {kind} '{base}', which is not defined", remedy=remedy)
            made = [_variant(values, kind, base, chosen, together, f"{key}.vary") for chosen in settings]
            for listed in (kind, "compared", "query_banks") if kind in ranked_sections() else (kind,):
                _run_in_place(values, kind, listed, base, made)


def _variant(
    values: dict[str, Any], kind: str, base: str, settings: Mapping[str, Scalar], together: list[str], key: str
) -> str:
    """Define one variant and return its name."""
    definition = copy.deepcopy(values[kind][base])
    for setting, value in settings.items():
        _set(definition, setting, value, f"{key}.{setting}")
    known = values.setdefault("variants", {}).setdefault(kind, {})
    if definition.get(_FOLLOWED) in together and _FOLLOWED not in settings:
        definition[_FOLLOWED] = _grid_name(known, definition[_FOLLOWED], settings)[0]
    name, made_of = _grid_name(known, base, settings)
    try:
        check_name(name)
    except ValueError as error:
        what = f"{key} would name a variant '{name}': {error}"
        raise UserError(what, remedy="vary by plain words and numbers") from error
    if name in values[kind]:
        raise UserError(f"{key} makes '{name}', which is already defined", remedy=f"see {kind} and grid")
    values[kind][name] = definition
    known[name] = made_of
    return name


def _grid_name(known: Mapping[str, Any], base: str, settings: Mapping[str, Scalar]) -> tuple[str, dict[str, Any]]:
    """Return the name and the origin of a variant. The origin of a variant of a variant is the first definition."""
    before = known.get(base, {"of": base, "vary": {}})
    varied = {**before["vary"], **settings}
    return variant_name(before["of"], varied), {"of": before["of"], "vary": varied}


def _set(definition: Any, key: str, value: Scalar, full_key: str) -> None:
    *parents, last = key.split(".")
    inner = definition
    try:
        for part in parents:
            if part == "0" and isinstance(inner, dict) and part not in inner:  # One phase needs no list.
                continue
            inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
        inner[int(last) if isinstance(inner, list) else last] = value
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        remedy = "dots lead into sections, and numbers from 0 into lists: training.phases.0.learning_rate"
        raise UserError(f"{full_key} names no setting", remedy=remedy) from error


def _run_in_place(values: dict[str, Any], kind: str, listed: str, base: str, made: list[str]) -> None:
    """Insert variants into a list of ``run``: in place of their base, or after its earlier variants."""
    run = (values.get("run") or {}).get(listed)
    if not run or not isinstance(run, list):  # What is no list is refused when the whole is checked.
        return
    of = values["variants"][kind]
    places = [at for at, name in enumerate(run) if name not in made and of.get(str(name), {}).get("of") == base]
    if base in run:
        at = run.index(base)
        run[at : at + 1] = made
    elif places:
        run[places[-1] + 1 : places[-1] + 1] = made


def _spelled(value: Scalar) -> str:
    return value if isinstance(value, str) else "none" if value is None else json.dumps(value)


BUILT_IN: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "backbones": {"vit": {"source": "trained"}},
    "decodings": {"greedy": {"beam_size": 1}, "beam": {"beam_size": 5, "n_best": 5, "attention": True}},
}
"""Definitions that every experiment has. An experiment that names one of them changes only the keys that it gives."""

LISTED = ("captioners", "retrievers", "rerankings")
"""The sections of the core whose definitions are run unless ``run`` lists others."""


def complete(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a configuration with the built-in definitions, and with the lists of ``run``.

    A list that ``run`` does not hold has all definitions that the experiment names itself; that of decodings, if a
    captioner is run, has the built-in ones too. What has the wrong type stays as it is, and the validation refuses it.
    """
    listed = (*LISTED, *sections_to_run())
    sections = {section: values.get(section) for section in (*listed, "decodings")}
    named = {section: list(given) if isinstance(given, Mapping) else [] for section, given in sections.items()}
    completed = dict(values)
    for section, definitions in BUILT_IN.items():
        given = values.get(section)
        if given is None or isinstance(given, Mapping):
            completed[section] = _merged(definitions, given or {})
    match values.get("decodings"):
        case {"beam": {"beam_size": int(size), **others}} if "n_best" not in others:
            # A narrower beam has fewer candidates.
            completed["decodings"]["beam"]["n_best"] = max(1, min(size, BUILT_IN["decodings"]["beam"]["n_best"]))
    run = values.get("run")
    if run is None or isinstance(run, Mapping):
        lists: dict[str, Any] = {section: named[section] for section in listed}
        lists |= run or {}
        if "decodings" not in lists:
            both = dict.fromkeys([*BUILT_IN["decodings"], *named["decodings"]])
            lists["decodings"] = list(both) if lists["captioners"] else []
        completed["run"] = lists
    return completed


def _merged(below: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definitions of both; a definition of both has the keys of both, and the given one decides."""
    both = {name: {**below[name], **own} for name, own in given.items() if name in below and isinstance(own, Mapping)}
    return {**below, **given, **both}
