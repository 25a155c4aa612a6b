"""What is wrong with a configuration, a line for each mistake, with the key that was probably meant."""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

Location = tuple[int | str, ...]
_OF_A_KEY = "[key]"
"""The marker that pydantic appends to a location when the key itself is invalid."""


def mistakes(model: type[BaseModel], values: Any, error: ValidationError) -> Iterator[tuple[str, str]]:
    """What is wrong and what to do, for every mistake that pydantic found."""
    for problem in error.errors():
        location = tuple(part for part in problem["loc"] if part != _OF_A_KEY)
        key = spelled(location)
        if problem["type"] == "extra_forbidden":
            meant = meant_key(model, values, location)
            remedy = f"did you mean '{spelled(meant)}'?" if meant else "see config.yaml for the keys there are"
            yield f"unknown configuration key '{key}'", remedy
            continue
        for message in problem["msg"].removeprefix("Value error, ").split("\n"):
            if key:
                yield (
                    f"configuration key '{key}': {message}",
                    f"it was {json.dumps(problem['input'], default=str)[:80]}",
                )
            else:
                yield message, "correct the configuration"


def spelled(location: Location) -> str:
    """``training.phases[0].epochs``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def meant_key(model: type[BaseModel], values: Any, location: Location) -> Location | None:
    """The existing key that an unknown one probably stands for.

    The first that exists of: a key with this name deeper in the same section; a key of the same section with a similar
    name; a key with this name elsewhere, the nearest section first.
    """
    *above, unknown = location
    here = tuple(above)
    found = _of_name(model, values, here, lambda name: name == unknown)
    if found is None:
        siblings = [path for path in _keys(model, values) if path[:-1] == here]
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
