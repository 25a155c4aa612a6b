"""``metrics.json``: scores as fractions, with their intervals and a one-line protocol."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter

from vitcapr.files import write_json
from vitcapr.formats.records import read_record

FORMAT = "vitcapr-metrics-1"
KEYS = ("value", "low", "high", "n")

Score = dict[str, float | int | None]
"""``value``, ``low``, ``high``, ``n``; None where there is no value or no interval."""


def write_metrics(
    path: Path, *, dataset: str, split: str, model: str, decoding: str, metrics: Mapping[str, Score], protocol: str
) -> None:
    write_json(
        path,
        {
            "format": FORMAT,
            "dataset": dataset,
            "split": split,
            "model": model,
            "decoding": decoding,
            "metrics": dict(metrics),
            "protocol": protocol,
        },
    )


def read_metrics(path: Path) -> dict[str, Any]:
    """The arguments of :func:`write_metrics` by their names, and ``format``.

    Raises:
        UserError: the file is missing or is not a metrics file.
    """
    return read_record(path, _CONTENT, f"a metrics file of format {FORMAT}", "score the captions").model_dump()


def _is_score(score: Score) -> Score:
    if set(score) != set(KEYS):
        raise ValueError(f"a score has {', '.join(KEYS)}")
    if not isinstance(score["n"], int) or score["n"] < 0:
        raise ValueError("n is a count")
    return score


class _Content(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    format: Literal["vitcapr-metrics-1"]
    dataset: str
    split: str
    model: str
    decoding: str
    metrics: dict[str, Annotated[Score, AfterValidator(_is_score)]]
    protocol: str


_CONTENT = TypeAdapter(_Content)
