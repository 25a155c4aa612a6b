"""Base classes and parser of the configuration: unknown keys are errors, and values are immutable."""

import difflib
import json
from pathlib import Path
from typing import Any, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from vitcapr.errors import UserError


class Section(BaseModel):
    """A part of the configuration. Unknown keys are errors; values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def canonical(self) -> dict[str, Any]:
        """The settings as plain JSON values with every default filled in, so that equal settings compare equal."""
        return self.model_dump(mode="json")


class StageSettings(Section):
    """The settings of one stage, taken from the configuration."""

    @classmethod
    def of(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        """The settings of one job. By default each field takes the section of the experiment's configuration with its
        name.

        Args:
            config: an :class:`~vitcapr.config.experiment.ExperimentConfig`.
            wildcards: the wildcards of the job, as attributes.
        """
        return cls(**{name: getattr(config, name) for name in cls.model_fields})


S = TypeVar("S", bound=Section)
_OF_A_KEY = "[key]"
"""The marker that pydantic appends to a location when the key itself is invalid."""


def parse(model: type[S], values: Any, where: object) -> S:
    """Validate ``values`` as a ``model``.

    Raises:
        UserError: the values are invalid; one line names the first wrong key and the closest valid key.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = error.errors()
        first = problems[0]
        key = ".".join(str(part) for part in first["loc"] if part != _OF_A_KEY)
        if first["type"] == "extra_forbidden":
            meant = _nearest(model, first["loc"])
            what = f"unknown configuration key '{key}'"
            remedy = f"did you mean '{meant}'?" if meant else "see config.yaml for the keys there are"
        else:
            message = first["msg"].removeprefix("Value error, ")
            what = f"configuration key '{key}': {message}" if key else message
            remedy = f"it was {json.dumps(first['input'], default=str)[:80]}" if key else "correct the configuration"
        if len(problems) > 1:
            remedy += f" ({len(problems) - 1} more after this one)"
        raise UserError(what, where=where, remedy=remedy) from error


def parse_settings(model: type[S], text: str) -> S:
    """Parse the ``--settings`` of a stage: JSON text, or the path of a JSON file."""
    source: object = "--settings"
    if not text.lstrip().startswith("{"):
        source = Path(text)
        try:
            text = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise UserError("the settings are neither JSON text nor a readable file", where=text) from error
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"the settings are not valid JSON: {error}", where=source) from error
    except RecursionError as error:
        raise UserError("the settings are nested too deeply", where=source) from error
    return parse(model, values, where=source)


def _nearest(model: type[Section], location: tuple[int | str, ...]) -> str | None:
    """The full path of the existing key that is closest to the unknown one."""
    fields = _fields_at(model, location[:-1])
    close = difflib.get_close_matches(str(location[-1]), fields, n=1)
    return ".".join([*(str(part) for part in location[:-1]), close[0]]) if close else None


def _fields_at(annotation: Any, path: tuple[int | str, ...]) -> list[str]:
    """The field names of the section at ``path``; the path may lead through lists, dictionaries and unions."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        if not path:
            return list(annotation.model_fields)
        field = annotation.model_fields.get(str(path[0]))
        return _fields_at(field.annotation, path[1:]) if field else []
    for argument in get_args(annotation):
        is_item = path and getattr(annotation, "__origin__", None) in (dict, list, tuple)
        found = _fields_at(argument, path[1:] if is_item else path)
        if found:
            return found
    return []
