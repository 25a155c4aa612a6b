"""Reading a configuration: YAML, and a line for each mistake with the key that was probably meant."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import ValidationError

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
}
"""Usual names of keys that are called differently here."""
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


def mistakes(model: type[Section], values: Any, error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yield the text and the remedy of each mistake that pydantic reports."""
    unnamed = list(_unnamed(model, values))
    for section in unnamed:
        yield (
            f"configuration key '{section}' holds a definition without a name",
            f"give it one: {section}: {{NAME: {{{next(iter(values[section]))}: ..., ...}}}}",
        )
    for problem in error.errors():
        location = _location(values, problem["loc"])
        if location and location[0] in unnamed:
            continue
        key, text = spelled(location), _PLAIN.get(problem["type"], problem["msg"].removeprefix("Value error, "))
        if problem["type"] == "extra_forbidden":
            yield _unknown(model, values, location, problem["loc"][-2:-1])
            continue
        if problem["type"] == "union_tag_invalid":
            text = f"{problem['ctx']['discriminator']} must be one of {problem['ctx']['expected_tags']}"
        given = "add it" if problem["type"] == "missing" else f"it was {json.dumps(problem['input'], default=str)[:80]}"
        for message in text.split("\n"):
            yield (f"configuration key '{key}': {message}", given) if key else (message, "correct the configuration")


def _unnamed(model: type[Section], values: Any) -> Iterator[str]:
    """Yield the sections of named definitions that hold the keys of one definition instead."""
    for name, field in model.model_fields.items():
        given = values.get(name) if isinstance(values, Mapping) else None
        definitions = sections_in(get_args(field.annotation)[1]) if get_origin(field.annotation) is dict else []
        if isinstance(given, Mapping) and not all(isinstance(value, Mapping) for value in given.values()):
            yield from [name] if any(given.keys() <= each.model_fields.keys() for each in definitions) else []


def _location(values: Any, location: Location) -> Location:
    """Return the location as the user writes it.

    pydantic adds the kind of a value, and the choice after a union's key.
    """
    parts, path = [part for part in location if not _NOT_A_KEY.match(str(part))], list[int | str]()
    for place, part in enumerate(parts, 1):
        inside = isinstance(values, Mapping) and part in values
        if inside or isinstance(part, int) or place == len(parts):
            path.append(part)
        if inside or isinstance(values, list):
            values = values[part]
    return tuple(path)


def spelled(location: Location) -> str:
    """``training.phases[0].epochs``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def sections_in(annotation: Any) -> list[type[Section]]:
    """Return the sections that a value may be: several for a union, none for a list or for names."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    if get_origin(annotation) in (dict, list):
        return []
    return [section for part in get_args(annotation) for section in sections_in(part)]


def choices_of(section: type[Section]) -> tuple[str, ...]:
    """Return the values with which the key ``chosen_by`` chooses this section of a union."""
    return get_args(section.model_fields[str(section.chosen_by)].annotation)


def _sections(annotation: Any, values: Any, path: Location = ()) -> Iterator[tuple[Location, type[Section], list[Any]]]:
    """Yield every section of a configuration, and every section of a union.

    Of named definitions those that ``values`` names, of lists the first entry and those in ``values``.
    """
    given, several, kind = (
        values if isinstance(values, Mapping) else {},
        sections_in(annotation),
        get_origin(annotation),
    )
    chosen = [each for each in several if len(several) > 1 and given.get(str(each.chosen_by)) in choices_of(each)]
    for section in chosen or several:
        yield path, section, several
        for name, field in section.model_fields.items():
            yield from _sections(field.annotation, given.get(name), (*path, name))
    if several:
        return
    inner = [(annotation, values, path) for annotation in get_args(annotation)]
    if kind is dict:
        inner = [(get_args(annotation)[1], value, (*path, name)) for name, value in given.items()]
    elif kind is list:
        entries = values if isinstance(values, list) and values else [values]
        inner = [(get_args(annotation)[0], value, (*path, place)) for place, value in enumerate(entries)]
    for each in inner:
        yield from _sections(*each)


def _unknown(model: type[Section], values: Any, location: Location, choice: Location) -> tuple[str, str]:
    """Return an unknown key: of another section of the union, or misspelled."""
    *above, unknown = location
    here, sections = tuple(above), list(_sections(model, values))
    union = next((several for path, _, several in sections if path == here and len(several) > 1), [])
    if owners := [each for each in union if unknown in each.model_fields]:
        needed = " or ".join(value for each in owners for value in choices_of(each))
        name = owners[0].chosen_by
        return f"configuration key '{spelled(location)}' needs {name} {needed}", f"here, {name} is {choice[0]}"
    keys = [(*path, name) for path, section, _ in sections for name in section.model_fields]
    meant = _meant(keys, values, here, _OTHER_WORDS.get(str(unknown), str(unknown)))
    remedy = f"did you mean '{spelled(meant)}'?" if meant else "`vitcapr config parameters` lists the keys"
    return f"unknown configuration key '{spelled(location)}'", remedy


def _meant(keys: Sequence[Location], values: Any, here: Location, unknown: str) -> Location | None:
    """Return the existing key that an unknown one of the section ``here`` probably stands for.

    A key of this section with a similar name; else a key with this name elsewhere in the same section of the top level,
    the nearest first.
    """
    beside = {str(key[-1]): key for key in keys if key[:-1] == here}
    close = difflib.get_close_matches(unknown, beside, n=1)
    named = [key for key in keys if key[-1] == unknown and key[: len(here[:1])] == here[:1]]

    def distance(key: Location) -> tuple[int, bool, int]:
        shared = [*(one == other for one, other in zip(key, here, strict=False)), False].index(False)
        return -shared, not _is_mentioned(values, key[:-1]), len(key)

    return beside[close[0]] if close else min(named, key=distance, default=None)


def _is_mentioned(values: Any, section: Location) -> bool:
    """Return whether the user gives the section, or names it as a choice (``dataset: flickr8k``)."""
    for part in section:
        if isinstance(part, int):
            values = values[part] if isinstance(values, list) and part < len(values) else values
        elif not isinstance(values, Mapping) or part not in values:
            return isinstance(values, Mapping) and part in values.values()
        else:
            values = values[part]
    return True


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a configuration file.

    Raises:
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
    """A YAML loader that refuses repeated keys; YAML's own loader keeps the last of them."""

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
