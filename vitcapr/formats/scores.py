"""Scores: of a split, of its images, of its pairs, of experiments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from filelock import FileLock, Timeout
from pydantic import Field

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, write_json, write_text
from vitcapr.formats.containers import frame_to_csv, read_arrays, read_parquet, write_arrays
from vitcapr.formats.records import JsonRecord, read_format, reading

FORMAT, COMPARISON_FORMAT = "vitcapr-metrics-1", "vitcapr-comparison-1"

Score = dict[str, float | int | None]
"""``value``, ``low``, ``high``, ``n``; None where there is no value or no interval."""


def write_metrics(
    path: Path,
    dataset: str,
    split: str,
    metrics: Mapping[str, Score],
    protocol: str,
    *,
    model: str = "",
    decoding: str = "",
) -> None:
    """Write ``metrics.json``: scores as fractions, with their intervals and a one-line protocol."""
    names = {"dataset": dataset, "split": split, "model": model, "decoding": decoding}
    write_json(path, {"format": FORMAT, **names, "metrics": dict(metrics), "protocol": protocol})


def read_metrics(path: Path) -> dict[str, Any]:
    """Return the arguments of :func:`write_metrics` by their names, and ``format``."""
    return read_format(path, FORMAT, "a metrics file", "score the captions")


def write_comparison(path: Path, content: dict[str, Any]) -> None:
    """Write ``comparison.json``: the result of :func:`vitcapr.metrics.system_comparison.compare_systems`."""
    write_json(path, {"format": COMPARISON_FORMAT, **content})


def read_comparison(path: Path) -> dict[str, Any]:
    """Return the content that :func:`write_comparison` wrote, and ``format``."""
    return read_format(path, COMPARISON_FORMAT, "a comparison", "compare the two systems")


DIFFERENCES = (
    "before", "after", "metric", "of_before", "of_after", "difference", "low", "high", "p_value", "adjusted", "verdict",
)  # fmt: skip


def write_differences(path: Path, table: pd.DataFrame) -> None:
    """Write ``differences.csv``: the result of :func:`vitcapr.metrics.system_comparison.paired_differences`."""
    write_text(path, frame_to_csv(table))


def read_differences(path: Path) -> pd.DataFrame:
    """Read the columns ``DIFFERENCES``, a row a score and pair of systems."""
    with reading(path, "a table of differences", "run the stage differences"):
        table = pd.read_csv(path, keep_default_na=False)
        if tuple(table.columns) != DIFFERENCES:
            raise ValueError(f"its columns should be {', '.join(DIFFERENCES)}")
        return table


def write_per_image(path: Path, table: pd.DataFrame) -> None:
    """Write ``per_image.parquet``: ``image_id``, ``caption``, ``tokens``, and the scores or their statistics."""
    with atomic_path(path) as temporary:
        table.to_parquet(temporary, index=False)


def read_per_image(path: Path) -> pd.DataFrame:
    with reading(path, "a table of scores by image", "score the captions"):
        table: pd.DataFrame = read_parquet(path).to_pandas(use_threads=False)
        if not {"image_id", "caption", "tokens"} <= set(table.columns):
            raise ValueError(f"its columns are {', '.join(table.columns)}")
        return table


class Ranks(NamedTuple):
    """Rank 1 is the best. Items whose score equals that of the positive rank before it.

    Attributes:
        i2t: (N,) int32, 1 + the captions of *other* images that score at least as high as the image's best caption.
        t2i: (M,) int32, 1 + the other images that score at least as high as the caption's image.
        i2t_precision: (N,) float64, average precision at R of each image, R the number of its captions.
    """

    i2t: npt.NDArray[np.int32]
    t2i: npt.NDArray[np.int32]
    i2t_precision: npt.NDArray[np.float64]


_ROWS = ("image_row", "caption_row", "caption_image")


@dataclass(frozen=True)
class RankFile:
    """``ranks.npz``: ranks, and of which images and captions; the rows are those of ``embeddings.npz``."""

    ranks: Ranks
    image_row: npt.NDArray[np.int32]
    caption_row: npt.NDArray[np.int32]
    caption_image: npt.NDArray[np.int32]

    def write(self, path: Path) -> None:
        write_arrays(path, self.ranks._asdict() | {name: getattr(self, name) for name in _ROWS})

    @classmethod
    def read(cls, path: Path, pool: Any = None) -> "RankFile":
        """Read ranks, and check that they belong to ``pool``.

        Raises:
            UserError: the ranks are of other images or captions than those embeddings or ranks, ``pool``.
        """
        kinds = {**dict.fromkeys(("i2t", "t2i", *_ROWS), np.integer), "i2t_precision": np.floating}
        arrays = read_arrays(path, kinds, "a table of ranks", "score the retriever")
        if pool is not None and not all(np.array_equal(arrays[row], getattr(pool, row)) for row in _ROWS[:2]):
            what = "the ranks are of other images or captions"
            raise UserError(what, where=path, remedy="score the same embeddings again")
        return cls(Ranks(*(arrays[name] for name in Ranks._fields)), *(arrays[name] for name in _ROWS))


COLUMNS = (
    "experiment", "dataset", "split", "model", "decoding", "metric", "value", "low", "high", "n", "protocol",
)  # fmt: skip
_NUMBERS = ("value", "low", "high")
_LOCK_SECONDS = 60


def write_summary(path: Path, table: pd.DataFrame) -> None:
    """Write ``summary.csv``: the scores of experiments in one tidy table, a row a score."""
    write_text(path, frame_to_csv(table))


def read_summary(path: Path | BinaryIO) -> pd.DataFrame:
    """Return the columns ``COLUMNS``; NaN where there is no value or no interval."""
    text = {name: str for name in COLUMNS if name not in (*_NUMBERS, "n")}
    no_score = {column: [""] for column in _NUMBERS}
    with reading(path, "a summary of scores", "delete it and make it again"):  # type: ignore[arg-type]
        table = pd.read_csv(path, dtype=text, keep_default_na=False, na_values=no_score)
        if tuple(table.columns) != COLUMNS:
            raise ValueError(f"its columns should be {', '.join(COLUMNS)}")
        return _typed(table)


def tidy(reports: Sequence[Mapping[str, Any]], experiment: str) -> pd.DataFrame:
    """Return one row for each score of each metrics file, in the order of the files and of the names."""
    rows = [
        {
            "experiment": experiment,
            **{key: report[key] for key in ("dataset", "split", "model", "decoding", "protocol")},
            "metric": metric,
            **score,
        }
        for report in reports
        for metric, score in sorted(report["metrics"].items())
    ]
    table = _typed(pd.DataFrame(rows, columns=list(COLUMNS)))
    repeated = table[table.duplicated(["dataset", "split", "model", "decoding", "metric"])]
    for _, twice in repeated.iterrows():
        what = f"{twice['metric']} of model '{twice['model']}', decoding '{twice['decoding']}' is given twice"
        raise UserError(what, remedy="name each metrics file once")
    return table


def collect(path: Path, table: pd.DataFrame, experiment: str) -> None:
    """Put an experiment's rows in place of those it had in the summary that all experiments share.

    The rows of an experiment whose folder is deleted go. Experiments that end together wait for one another.

    Raises:
        UserError: another process held the summary for a minute.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    try:
        with FileLock(lock, timeout=_LOCK_SECONDS):
            others = []
            if path.exists():
                present = read_summary(path)
                kept = [name for name in present["experiment"].unique() if (path.parent / name).is_dir()]
                others = [present[present["experiment"].isin(kept) & (present["experiment"] != experiment)]]
            together = pd.concat([*others, table], ignore_index=True)
            write_summary(path, together.sort_values("experiment", kind="stable", ignore_index=True))
    except Timeout as error:
        raise UserError("another process holds the summary", where=lock, remedy="run the same command again") from error


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({"value": float, "low": float, "high": float, "n": int})


@dataclass(frozen=True)
class ParaphrasesCard(JsonRecord):
    """``card.json`` beside METEOR's paraphrases: what a table of paraphrases is of."""

    FORMAT: ClassVar[str] = "vitcapr-paraphrases-1"
    KIND: ClassVar[str] = "a card of paraphrases"
    REMEDY: ClassVar[str] = "run the stage paraphrases"

    entries: Annotated[int, Field(ge=0)]
    references: str
    """sha256 of the references."""
    table: str
    """sha256 of ``table.gz``."""


PARAPHRASES_CARD, PARAPHRASES_TABLE = "card.json", "table.gz"
"""In one folder; the table has lines by three, a probability and two phrases."""
