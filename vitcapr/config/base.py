"""What every part of the configuration shares: closed, frozen, and clear about a mistake."""

import difflib
import json
from pathlib import Path
from typing import Any, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from vitcapr.errors import UserError


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def canonical(self) -> dict[str, Any]:
        """Plain JSON values, every default filled in: equal settings give equal values however they were written."""
        return self.model_dump(mode="json")


class StageSettings(Section):
    """What one stage reads of the configuration."""

    @classmethod
    def of(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        """The settings of one job: the parts of the experiment's configuration that have the names of the fields.

        Args:
            config: an :class:`~vitcapr.config.experiment.ExperimentConfig`.
            wildcards: those of the job, as attributes.
        """
        return cls(**{name: getattr(config, name) for name in cls.model_fields})


S = TypeVar("S", bound=Section)
_OF_A_KEY = "[key]"
"""Pydantic's last part of a location that is a key itself."""


def parse(model: type[S], values: Any, where: object) -> S:
    """``values`` as a checked ``model``.

    Raises:
        UserError: one line that names the first wrong key, and the key that was probably meant.
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
    """A stage's ``--settings``: JSON text, or the path of a JSON file."""
    source: object = "--settings"
    if not text.lstrip().startswith("{"):
        source = Path(text)
        try:
            text = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise UserError("settings are neither JSON nor a readable file", where=text) from error
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"settings are not JSON: {error}", where=source) from error
    return parse(model, values, where=source)


def _nearest(model: type[Section], location: tuple[int | str, ...]) -> str | None:
    """The existing key closest to the unknown one, spelled with its full path."""
    fields = _fields_at(model, location[:-1])
    close = difflib.get_close_matches(str(location[-1]), fields, n=1)
    return ".".join([*(str(part) for part in location[:-1]), close[0]]) if close else None


def _fields_at(annotation: Any, path: tuple[int | str, ...]) -> list[str]:
    """The field names of the section that ``path`` leads to, through lists, dictionaries and unions."""
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
