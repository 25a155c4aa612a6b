"""JSON files whose content is checked as they are read, and the one guard around every reader.

It imports neither numpy nor pandas: the card of a model is read by commands that need no more.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from vitcapr.errors import UserError
from vitcapr.files import parse_json, read_text, write_json

Content = TypeVar("Content")


@contextmanager
def reading(path: Path | str, what: str, remedy: str) -> Iterator[None]:
    """Around everything that reads and checks a file: any error becomes one line for the user.

    Libraries raise almost anything at a file that is damaged or of another format.

    Args:
        what: that the file should be, as in "a table of ranks".
        remedy: how to make it, as in "run the embed stage".
    """
    try:
        yield
    except UserError:
        raise
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except MemoryError as error:
        more = "raise the limit of the memory (ulimit -v) and run the same command again"
        raise UserError("not enough memory to read the file", where=path, remedy=more) from error
    except Exception as error:
        raise UserError(f"not {what}: {_reason(error)}", where=path, remedy=f"{remedy} again") from error


def _reason(error: Exception) -> str:
    """Return the first thing that is wrong; with its place, where pydantic says it."""
    if not isinstance(error, ValidationError):
        return f"it has no {error}" if isinstance(error, KeyError) else str(error)[:300]
    first = error.errors(include_url=False, include_input=False)[0]
    place, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    return f"{place}: {reason}" if place else reason


def _entry(content: str, place: Sequence[int | str]) -> str:
    """Return the id of the entry of a JSON text that a place lies in; empty if it has none."""
    value: Any = parse_json(content) if place else None
    for step in place:
        if isinstance(value, dict) and (names := [name for name in ("image_id", "id") if name in value]):
            return f"{names[0]} {value[names[0]]}: "
        value = value.get(step) if isinstance(value, dict) else value[step]
    return ""


def read_record(path: Path, kind: TypeAdapter[Content], what: str, remedy: str) -> Content:
    """Return the content of a JSON file of a type."""
    with reading(path, what, remedy):
        content = read_text(path)
        try:
            return kind.validate_json(content)
        except ValidationError as error:
            raise ValueError(_entry(content, error.errors()[0]["loc"]) + _reason(error)) from error


def read_format(path: Path, form: str, what: str, remedy: str) -> dict[str, Any]:
    """Return the content of a JSON file that a stage wrote, if its ``format`` is ``form``."""
    with reading(path, f"{what} of format {form}", remedy):
        content: dict[str, Any] = parse_json(read_text(path))
        if content["format"] != form:
            raise ValueError(f"its format is {content['format']}")
        return content


@dataclass(frozen=True)
class JsonRecord:
    """A JSON file of one format. The fields of a subclass are those of the file."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    FORMAT: ClassVar[str]
    KIND: ClassVar[str]
    """Name of the kind of file, as in "a weight"."""
    REMEDY: ClassVar[str]
    """How to make it, as in "run the stage extract"."""

    def write(self, path: Path) -> None:
        write_json(path, {"format": self.FORMAT, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> Self:
        content = read_format(path, cls.FORMAT, cls.KIND, cls.REMEDY)
        with reading(path, f"{cls.KIND} of format {cls.FORMAT}", cls.REMEDY):
            return TypeAdapter(cls).validate_json(json.dumps({k: v for k, v in content.items() if k != "format"}))
