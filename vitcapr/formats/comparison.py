"""``comparison.json``: two systems scored on the same images, and the difference of every score."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vitcapr.files import write_json
from vitcapr.formats.records import read_record

FORMAT = "vitcapr-comparison-1"


def write_comparison(path: Path, content: dict[str, Any]) -> None:
    """Write the result of :func:`vitcapr.metrics.comparison.compare_systems`."""
    write_json(path, {"format": FORMAT, **content})


def read_comparison(path: Path) -> dict[str, Any]:
    """The content that :func:`write_comparison` wrote, and ``format``.

    Raises:
        UserError: the file is missing or is not a comparison.
    """
    what = f"a comparison of format {FORMAT}"
    return read_record(path, _CONTENT, what, "compare the two systems").model_dump()


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _System(_Record):
    model: str
    decoding: str
    protocol: str


class _Difference(_Record):
    before: int | float
    after: int | float
    difference: int | float
    low: float | None
    high: float | None
    p_value: Annotated[float, Field(ge=0, le=1)] | None
    verdict: str


_Count = Annotated[int, Field(ge=0)]


class _Content(_Record):
    format: Literal["vitcapr-comparison-1"]
    dataset: str
    split: str
    images: _Count
    changed: _Count
    before: _System
    after: _System
    metrics: dict[str, _Difference]
    protocol: str


_CONTENT = TypeAdapter(_Content)
