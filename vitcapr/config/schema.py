"""The JSON schema of a configuration, with the docstring of every key as its description."""

import json
from collections.abc import Iterator
from typing import Any, get_args

from vitcapr.config.base import Section, conditions
from vitcapr.config.described import described
from vitcapr.config.experiment import ExperimentConfig


def schema_text() -> str:
    """The content of workflow/schemas/config.schema.json."""
    content: dict[str, Any] = ExperimentConfig.model_json_schema()
    _allow_without_choice(content)
    for section in _sections(ExperimentConfig):
        place = content if section is ExperimentConfig else content["$defs"][section.__name__]
        needs = {key: f" Only with {' and '.join(map(str, marks))}." for key, marks in conditions(section).items()}
        for key, text in described(section).items():
            place["properties"][key]["description"] = text + needs.get(key, "")
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _allow_without_choice(schema: Any) -> None:
    """Unions become ``anyOf``: without the key that chooses, a section may fit several of ``oneOf``."""
    if isinstance(schema, dict) and "oneOf" in schema:
        schema["anyOf"] = schema.pop("oneOf")
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _allow_without_choice(part)


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
