"""What is wrong with a configuration, a line for each mistake, with the key that was probably meant."""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

Location = tuple[int | str, ...]
_OF_A_KEY = "[key]"
"""The marker that pydantic appends to a location when the key itself is invalid."""
_OTHER_WORDS = {"lr": "learning_rate", "batch_size": "batch_images"}
"""Usual names of keys that are called differently here."""
_PLAIN = {
    "model_type": "it must be a section, with keys of its own",
    "dict_type": "it must be a section, with keys of its own",
    "int_type": "it must be a whole number",
    "int_parsing": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "float_type": "it must be a number",
    "float_parsing": "it must be a number",
    "list_type": "it must be a list",
    "string_type": "it must be a text",
    "bool_parsing": "it must be true or false",
    "bool_type": "it must be true or false",
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
        location = tuple(part for part in problem["loc"] if part != _OF_A_KEY)
        if location and location[0] in unnamed:
            continue
        key = spelled(location)
        if problem["type"] == "extra_forbidden":
            meant = meant_key(model, values, location)
            remedy = f"did you mean '{spelled(meant)}'?" if meant else "`vitcapr config parameters` lists the keys"
            yield f"unknown configuration key '{key}'", remedy
            continue
        said = _PLAIN.get(problem["type"], problem["msg"].removeprefix("Value error, "))
        for message in said.split("\n"):
            if key:
                yield (
                    f"configuration key '{key}': {message}",
                    f"it was {json.dumps(problem['input'], default=str)[:80]}",
                )
            else:
                yield message, "correct the configuration"


def _unnamed(model: type[BaseModel], values: Any) -> Iterator[str]:
    """The sections of named definitions that hold the keys of one definition instead."""
    for section, field in model.model_fields.items():
        given = values.get(section) if isinstance(values, Mapping) else None
        definition = get_args(field.annotation)[1] if get_origin(field.annotation) is dict else None
        if isinstance(given, Mapping) and isinstance(definition, type) and issubclass(definition, BaseModel):
            is_definition = any(not isinstance(value, Mapping) for value in given.values())
            if is_definition and given.keys() <= definition.model_fields.keys():
                yield section


def spelled(location: Location) -> str:
    """``training.phases[0].epochs``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def meant_key(model: type[BaseModel], values: Any, location: Location) -> Location | None:
    """The existing key that an unknown one probably stands for.

    The first that exists of: the plural in the same section; a key with this name deeper in the same section; a key of
    the same section with a similar name; a key with this name elsewhere, the nearest section first.
    """
    *above, unknown = location
    unknown = _OTHER_WORDS.get(str(unknown), unknown)
    here = tuple(above)
    siblings = [path for path in _keys(model, values) if path[:-1] == here]
    found = next((path for path in siblings if path[-1] == f"{unknown}s"), None)
    if found is None:
        found = _of_name(model, values, here, lambda name: name == unknown)
    if found is None:
        close = difflib.get_close_matches(str(unknown), [str(path[-1]) for path in siblings], n=1)
        found = (*here, close[0]) if close else None
    while found is None and above:
        above.pop()
        found = _of_name(model, values, tuple(above), lambda name: name == unknown)
    return found


def _of_name(model: type[BaseModel], values: Any, below: Location, fits: Callable[[object], bool]) -> Location | None:
    """The key below a section whose name fits: one in a section that the user mentions, then the least deep one."""
    paths = [path for path in _keys(model, values) if path[: len(below)] == below and fits(path[-1])]
    return min(paths, key=lambda path: (not _is_mentioned(values, path[:-1]), len(path)), default=None)


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
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield (*path, name)
            yield from _keys(field.annotation, values.get(name) if isinstance(values, Mapping) else None, (*path, name))
    elif get_origin(annotation) is dict:
        for name, value in values.items() if isinstance(values, Mapping) else ():
            yield from _keys(get_args(annotation)[1], value, (*path, name))
    elif get_origin(annotation) is list:
        for place, value in enumerate(values if isinstance(values, list) and values else [values]):
            yield from _keys(get_args(annotation)[0], value, (*path, place))
    else:
        for choice in get_args(annotation):
            yield from _keys(choice, values, path)
