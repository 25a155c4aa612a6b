"""Reading a configuration: YAML, and a line for each mistake with the key that was probably meant."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from vitcapr.config.base import Section
from vitcapr.errors import UserError, as_user_error

S = TypeVar("S", bound=Section)


def parse(model: type[S], values: Any, where: object) -> S:
    """Validate ``values`` as a ``model``.

    Raises:
        UserError: the values are invalid; a line for each mistake names the wrong key and the key that was meant.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise as_user_error(
            [UserError(what, where=where, remedy=remedy) for what, remedy in mistakes(model, values, error)]
        ) from error


Location = tuple[int | str, ...]
_NOT_A_KEY = re.compile(r"\[key\]$|literal\[|constrained-")
"""Begins what pydantic appends to a location: for an invalid key, and for the choices of a value."""
_OTHER_WORDS = {
    "lr": "learning_rate",
    "batch_size": "batch_images",
    "batch": "batch_images",
    "attended": "attention_images",
    "attended_images": "attention_first",
    "attended_words": "attention_words",
    "metrics": "caption",
}
"""Usual and former names of keys that are called differently here."""
_PLAIN = {
    "missing": "it must be given",
    "list_type": "it must be a list",
    "string_type": "it must be a text",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "it must be a section, with keys of its own"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "it must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "it must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "it must be true or false"),
}
"""What pydantic says in terms of Python, by the type of its error."""


def mistakes(model: type[BaseModel], values: Any, error: ValidationError) -> Iterator[tuple[str, str]]:
    """What is wrong and what to do, for every mistake that pydantic found."""
    unnamed = list(_unnamed(model, values))
    for section in unnamed:
        yield (
            f"configuration key '{section}' holds a definition without a name",
            f"give it one: {section}: {{NAME: {{{next(iter(values[section]))}: ..., ...}}}}",
        )
    for problem in error.errors():
        location, choices, choice = _place(
            model, tuple(part for part in problem["loc"] if not _NOT_A_KEY.match(str(part)))
        )
        if location and location[0] in unnamed:
            continue
        key = spelled(location)
        if problem["type"] == "extra_forbidden":
            if owners := [value for value, section in choices.items() if location[-1] in section.model_fields]:
                name = choices[owners[0]].chosen_by  # type: ignore[attr-defined]
                yield f"configuration key '{key}' needs {name} {' or '.join(owners)}", f"here, {name} is {choice}"
                continue
            meant = meant_key(model, values, location)
            remedy = f"did you mean '{spelled(meant)}'?" if meant else "`vitcapr config parameters` lists the keys"
            yield f"unknown configuration key '{key}'", remedy
            continue
        text = _PLAIN.get(problem["type"], problem["msg"].removeprefix("Value error, "))
        if problem["type"] == "union_tag_invalid":
            text = f"{problem['ctx']['discriminator']} must be one of {problem['ctx']['expected_tags']}"
        for message in text.split("\n"):
            if key:
                given = json.dumps(problem["input"], default=str)[:80]
                remedy = "add it" if problem["type"] == "missing" else f"it was {given}"
                yield f"configuration key '{key}': {message}", remedy
            else:
                yield message, "correct the configuration"


def _unnamed(model: type[BaseModel], values: Any) -> Iterator[str]:
    """The sections of named definitions that hold the keys of one definition instead."""
    for section, field in model.model_fields.items():
        given = values.get(section) if isinstance(values, Mapping) else None
        definitions = sections_in(get_args(field.annotation)[1]) if get_origin(field.annotation) is dict else []
        if not isinstance(given, Mapping) or all(isinstance(value, Mapping) for value in given.values()):
            continue
        if any(given.keys() <= definition.model_fields.keys() for definition in definitions):
            yield section


def sections_in(annotation: Any) -> list[type[BaseModel]]:
    """The sections that a value may be: several for a union, none for a list or for names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (dict, list):
        return []
    return [section for part in get_args(annotation) for section in sections_in(part)]


def sections_by_choice(sections: Sequence[Any]) -> dict[str, type[BaseModel]]:
    """The sections of a union by the value of the key that tells them apart, ``chosen_by``."""
    return {
        value: section for section in sections for value in get_args(section.model_fields[section.chosen_by].annotation)
    }


def _place(annotation: Any, location: Location) -> tuple[Location, dict[str, type[BaseModel]], object]:
    """A location as the user writes it; and, if it is a key of a union's section, its choices and the chosen one.

    pydantic adds the choice to the location, after the key of the section.
    """
    path: list[int | str] = []
    choices: dict[str, type[BaseModel]] = {}
    choice: object = None
    for place, part in enumerate(location):
        sections = sections_in(annotation)
        if len(sections) > 1:
            choices, choice = sections_by_choice(sections), part
            annotation = choices[str(part)]
            continue
        path.append(part)
        if place < len(location) - 1:
            choices = {}
        if sections:
            field = sections[0].model_fields.get(str(part))
            annotation = None if field is None else field.annotation
        else:
            annotation = next(iter(_values_in(annotation)), None)
    return tuple(path), choices, choice


def _values_in(annotation: Any) -> list[Any]:
    """What the values of a list, or of names, may be."""
    if get_origin(annotation) in (dict, list):
        return [get_args(annotation)[-1]]
    return [inner for part in get_args(annotation) for inner in _values_in(part)]


def spelled(location: Location) -> str:
    """``training.phases[0].epochs``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def meant_key(model: type[BaseModel], values: Any, location: Location) -> Location | None:
    """The existing key that an unknown one probably stands for.

    The first that exists of: the plural in the same section; a key with this name deeper in the same section; a key of
    the same section with a similar name; a key with this name elsewhere in the same section of the top level, the
    nearest first.
    """
    *above, unknown = location
    unknown = _OTHER_WORDS.get(str(unknown), unknown)
    here, keys = tuple(above), list(_keys(model, values))
    beside = [path for path in keys if path[:-1] == here]
    named = [path for path in keys if path[-1] == unknown and path[: len(here[:1])] == here[:1]]
    close = difflib.get_close_matches(str(unknown), [str(path[-1]) for path in beside], n=1)
    choices = (
        [path for path in beside if path[-1] == f"{unknown}s"],
        [path for path in named if path[: len(here)] == here],
        [path for path in beside if path[-1] in close],
        named,
    )

    def distance(path: Location) -> tuple[int, bool, int]:
        shared = [*(one == other for one, other in zip(path, here, strict=False)), False].index(False)
        return -shared, not _is_mentioned(values, path[:-1]), len(path)

    return next((min(paths, key=distance) for paths in choices if paths), None)


def _is_mentioned(values: Any, section: Location) -> bool:
    """Whether the user gives the section, or names it as a choice (``dataset: flickr8k``)."""
    for part in section:
        if isinstance(part, int):
            values = values[part] if isinstance(values, Sequence) and part < len(values) else values
        elif isinstance(values, Mapping):
            if part not in values:
                return part in [value for value in values.values() if isinstance(value, str)]
            values = values[part]
        else:
            return False
    return True


def _keys(annotation: Any, values: Any, path: Location = ()) -> Iterator[Location]:
    """Every key of a configuration; of named definitions those that ``values`` name, of lists the first entry and those
    that ``values`` have."""
    sections = sections_in(annotation)
    if len(sections) > 1:
        choices = sections_by_choice(sections)
        chosen = values.get(sections[0].chosen_by) if isinstance(values, Mapping) else None  # type: ignore[attr-defined]
        sections = [choices[chosen]] if chosen in choices else sections
    for section in sections:
        for name, field in section.model_fields.items():
            yield (*path, name)
            yield from _keys(field.annotation, values.get(name) if isinstance(values, Mapping) else None, (*path, name))
    if sections:
        return
    if get_origin(annotation) is dict:
        for name, value in values.items() if isinstance(values, Mapping) else ():
            yield from _keys(get_args(annotation)[1], value, (*path, name))
    elif get_origin(annotation) is list:
        for place, value in enumerate(values if isinstance(values, list) and values else [values]):
            yield from _keys(get_args(annotation)[0], value, (*path, place))
    else:
        for choice in get_args(annotation):
            yield from _keys(choice, values, path)


def read_yaml(path: Path) -> dict[str, Any]:
    """Raises:
    UserError: the file is missing or is not a YAML mapping, or a key stands twice in a section.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            values = yaml.load(file, _UniqueKeys)
    except OSError as error:
        raise UserError(f"the configuration cannot be read: {error.strerror}", where=path) from error
    except (RecursionError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"not YAML in UTF-8: {error}", where=path) from error
    if not isinstance(values, dict):
        raise UserError("a configuration is a mapping of keys to values", where=path)
    return values


class _UniqueKeys(yaml.SafeLoader):
    """Of two equal keys YAML's own loader takes the last."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        first: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                if key.value in first:
                    what = f"the key '{key.value}' stands twice in its section, in lines {first[key.value]} and {line}"
                    raise UserError(what, where=self.name, remedy="rename or remove one of them")
                first[key.value] = line
        return node
