"""The JSON schema of a configuration, with the docstring of every key as its description."""

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

from vitcapr.config.base import Section
from vitcapr.config.experiment import ExperimentConfig


def schema_text() -> str:
    """The content of workflow/schemas/config.schema.json."""
    content: dict[str, Any] = ExperimentConfig.model_json_schema()
    for section in _sections(ExperimentConfig):
        place = content if section is ExperimentConfig else content["$defs"][section.__name__]
        for key, text in _descriptions(section).items():
            place["properties"][key]["description"] = text
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _sections(model: type[Section]) -> set[type[Section]]:
    """``model`` and all sections that its fields refer to."""
    found = {model}
    waiting = [model]
    while waiting:
        for field in waiting.pop().model_fields.values():
            for named in _sections_in(field.annotation):
                if named not in found:
                    found.add(named)
                    waiting.append(named)
    return found


def _sections_in(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in get_args(annotation):
        yield from _sections_in(part)


def _descriptions(section: type[Section]) -> dict[str, str]:
    """The docstring of each field of the section, inherited fields included, by key.

    Pydantic can read them when a class is created, but this takes 0.2 s in every command. Only the schema needs them.
    """
    found: dict[str, str] = {}
    for ancestor in reversed(section.__mro__):
        if issubclass(ancestor, Section):
            found |= _strings_of(ancestor.__module__).get(ancestor.__name__, {})
    return {key: text for key, text in found.items() if key in section.model_fields}


@cache
def _strings_of(module: str) -> dict[str, dict[str, str]]:
    """The docstrings of the fields of each class of a module, by class and key."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_strings_under(node)) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _strings_under(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for key, text in zip(node.body, node.body[1:], strict=False):
        match key, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, inspect.cleandoc(said)
