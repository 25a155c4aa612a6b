"""JSON files whose content is checked against a type as they are read."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from vitcapr.errors import UserError
from vitcapr.files import read_file, write_json

Content = TypeVar("Content")


def read_record(path: Path, kind: TypeAdapter[Content], what: str, remedy: str) -> Content:
    """The content of a JSON file.

    Args:
        what: that the file should be, as in "a metrics file".
        remedy: how to make it, as in "score the captions".

    Raises:
        UserError: the file is missing, is not JSON, or its content is not of the type.
    """
    try:
        content = read_file(path)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except OSError as error:
        raise UserError(f"the file cannot be read: {error.strerror}", where=path, remedy=remedy) from error
    try:
        return kind.validate_json(content)
    except ValidationError as error:
        raise UserError(f"not {what}: {reason_of(error)}", where=path, remedy=f"{remedy} again") from error


@dataclass(frozen=True)
class JsonRecord:
    """A JSON file of one format. The fields of a subclass are those of the file."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    FORMAT: ClassVar[str]
    KIND: ClassVar[str]
    """What the file is, as in "a weight"."""
    REMEDY: ClassVar[str]
    """How to make it, as in "run the stage extract"."""

    def write(self, path: Path) -> None:
        write_json(path, {"format": self.FORMAT, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises:
        UserError: the file is missing or is not of this format.
        """
        what = f"{cls.KIND} of format {cls.FORMAT}"
        content = read_record(path, _CONTENT, what, cls.REMEDY)
        if content.pop("format", None) != cls.FORMAT:
            raise UserError(f"not {what}", where=path, remedy=f"{cls.REMEDY} again")
        try:
            return TypeAdapter(cls).validate_json(json.dumps(content))
        except ValidationError as error:
            raise UserError(f"not {what}: {reason_of(error)}", where=path, remedy=f"{cls.REMEDY} again") from error


_CONTENT = TypeAdapter(dict[str, Any])


def reason_of(error: ValidationError) -> str:
    """The first thing that is wrong, and its place in the file."""
    first = error.errors(include_url=False, include_input=False)[0]
    place, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    return f"{place}: {reason}" if place else reason
