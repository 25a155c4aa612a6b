"""``cleaning.json``: how much cleaning removed from the captions of each language."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vitcapr.files import write_json
from vitcapr.formats.records import read_record


def write_cleaning(path: Path, removed: Mapping[str, Mapping[str, int]], *, cleaned: bool) -> None:
    """Write the counts of each language; none if the texts were not ``cleaned``."""
    write_json(path, {"cleaned": cleaned, "languages": removed})


def read_cleaning(path: Path) -> dict[str, dict[str, int]]:
    """The counts by language, as :class:`vitcapr.text.cleaning.Removed` names them.

    Raises:
        UserError: the file is missing or is no such record.
    """
    content = read_record(path, _CONTENT, "a record of cleaning", "set data.dataset: pairs, and run the data stage")
    return {language: counts.model_dump() for language, counts in content.languages.items()}


_Count = Annotated[int, Field(ge=0)]


class _Counts(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    captions: _Count
    emptied: _Count
    characters: _Count
    kept: _Count
    symbols: _Count
    spaces: _Count
    fillers: _Count
    title_marks: _Count


class _Content(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    cleaned: bool
    languages: dict[str, _Counts]


_CONTENT = TypeAdapter(_Content)
