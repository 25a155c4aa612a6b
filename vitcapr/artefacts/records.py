"""JSON files whose content is checked against a type as they are read."""

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from vitcapr.errors import UserError
from vitcapr.files import read_file

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


def reason_of(error: ValidationError) -> str:
    """The first thing that is wrong, and its place in the file."""
    first = error.errors(include_url=False, include_input=False)[0]
    place, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    return f"{place}: {reason}" if place else reason
