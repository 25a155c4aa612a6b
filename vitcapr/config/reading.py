"""Reading a configuration: YAML, and a line for each mistake with the key that was probably meant."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import ValidationError

from vitcapr.config.base import Section
from vitcapr.errors import UserError, as_user_error, did_you_mean

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
_PLAIN = {
    "missing": "it must be given",
    "list_type": "it must be a list",
    "string_type": "it must be a text",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "it must be a section, with keys of its own"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "it must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "it must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "it must be true or false"),
}
"""Plain words for pydantic's types of errors."""


def mistakes(model: type[Section], values: Any, error: ValidationError) -> Iterator[tuple[str, str]]:
    """Describe every mistake that pydantic reports, and what to do."""
    for problem in error.errors():
        absent = problem["type"] in ("missing", "extra_forbidden")
        key = spelled(_location(values, problem["loc"], absent))
        text, remedy = _PLAIN.get(problem["type"], _in_plain_words(problem["msg"])), ""
        match problem["type"]:
            case "extra_forbidden":
                yield _unknown(model, problem["loc"], key)
                continue
            case "union_tag_invalid":
                text = f"{problem['ctx']['discriminator']} must be one of {problem['ctx']['expected_tags']}"
            case "missing":
                remedy = "add it"
        remedy = remedy or f"it was {json.dumps(problem['input'], default=str)[:80]}"
        for line in text.split("\n"):
            yield (f"configuration key '{key}': {line}", remedy) if key else (line, "correct the configuration")


def _in_plain_words(message: str) -> str:
    return re.sub("^(Input|String|List|Dictionary|Set|Tuple) should", "it must", message.removeprefix("Value error, "))


def _location(values: Any, location: Location, absent: bool) -> Location:
    """Return the location as the user writes it: pydantic adds the kind of a value, and the choice after a union's key.

    ``absent``: the last part is a key that the configuration or the section does not have.
    """
    parts, path = [part for part in location if not _NOT_A_KEY.match(str(part))], list[int | str]()
    for place, part in enumerate(parts, 1):
        inside = isinstance(values, Mapping) and part in values
        if inside or isinstance(part, int) or (absent and place == len(parts)):
            path.append(part)
        if inside or isinstance(values, list):
            values = values[part]
    return tuple(path)


def spelled(location: Location) -> str:
    """``training.phases[0].epochs``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def sections_in(annotation: Any) -> Iterator[type[Section]]:
    """Yield the sections that a value may be or hold."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from sections_in(part)


def _unknown(model: type[Section], location: Location, key: str) -> tuple[str, str]:
    """Describe an unknown key: of another section of a union, or misspelled."""
    *above, unknown = location
    sections, union = [model], [model]
    for part in above:  # The name of a definition leads to no other section, and the choice of a union to one of it.
        fields = [each.model_fields[part] for each in sections if part in each.model_fields]
        sections = [each for field in fields for each in sections_in(field.annotation)] or sections
        union = sections if fields else union
        sections = [each for each in sections if each.chosen_by and part in choices_of(each)] or sections
    if owners := [each for each in union if each.chosen_by and unknown in each.model_fields]:
        needed = " or ".join(value for each in owners for value in choices_of(each))
        name = owners[0].chosen_by
        return f"configuration key '{key}' needs {name} {needed}", f"here, {name} is {above[-1]}"
    if above and unknown in model.model_fields:
        return f"unknown configuration key '{key}'", f"'{unknown}' is a key of the top level"
    known = {name for each in sections for name in each.model_fields}
    meant = {"lr": "learning_rate", "batch": "batch_images"}.get(str(unknown), str(unknown))
    remedy = did_you_mean(meant, sorted(known), "`vitcapr config parameters` lists the keys")
    return f"unknown configuration key '{key}'", remedy


def choices_of(section: type[Section]) -> tuple[str, ...]:
    """Return the values of the key ``chosen_by`` that choose this section of a union."""
    return get_args(section.model_fields[str(section.chosen_by)].annotation)


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
