"""Scores: of a split, of its images, of its pairs, of experiments, of people."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, read_file, write_json, write_text
from vitcapr.formats.containers import JsonRecord, frame_to_csv, read_arrays, read_parquet, read_record, write_arrays
from vitcapr.formats.embeddings import Embeddings

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
    return read_record(path, _METRICS, f"a metrics file of format {FORMAT}", "score the captions").model_dump()


def _is_score(score: Score) -> Score:
    if set(score) != set(KEYS):
        raise ValueError(f"a score has {', '.join(KEYS)}")
    if not isinstance(score["n"], int) or score["n"] < 0:
        raise ValueError("n is a count")
    return score


class _Metrics(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    format: Literal["vitcapr-metrics-1"]
    dataset: str
    split: str
    model: str
    decoding: str
    metrics: dict[str, Annotated[Score, AfterValidator(_is_score)]]
    protocol: str


_METRICS = TypeAdapter(_Metrics)


_IMAGE_COLUMNS = ("image_id", "caption", "tokens")


def write_per_image(path: Path, table: pd.DataFrame) -> None:
    """Write ``image_id``, ``caption``, ``tokens`` and a column for each score or its statistics."""
    with atomic_path(path) as temporary:
        table.to_parquet(temporary, index=False)


def read_per_image(path: Path) -> pd.DataFrame:
    """Raises:
    UserError: the file is missing or is not such a table.
    """
    what, remedy = "not a table of scores by image", "score the captions"
    try:
        table: pd.DataFrame = read_parquet(path).to_pandas(use_threads=False)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UserError(what, where=path, remedy=f"{remedy} again") from error
    if missing := [name for name in _IMAGE_COLUMNS if name not in table.columns]:
        raise UserError(f"{what}: it has no column {missing[0]}", where=path, remedy=f"{remedy} again")
    if table["image_id"].duplicated().any() or table["image_id"].isna().any():
        raise UserError(f"{what}: an image occurs twice", where=path, remedy=f"{remedy} again")
    return table


Rows = npt.NDArray[np.int32]
_ROWS = ("image_row", "caption_row", "caption_image")


class Ranks(NamedTuple):
    """Rank 1 is the best. Items whose score equals that of the positive rank before it.

    Attributes:
        i2t: (N,) int32, 1 + the captions of *other* images that score at least as high as the image's best caption.
        t2i: (M,) int32, 1 + the other images that score at least as high as the caption's image.
        i2t_precision: (N,) float64, average precision at R of each image, R the number of its captions.
    """

    i2t: Rows
    t2i: Rows
    i2t_precision: npt.NDArray[np.float64]


@dataclass(frozen=True)
class RankFile:
    """Ranks, and of which images and captions; the rows are those of ``embeddings.npz``."""

    ranks: Ranks
    image_row: Rows
    caption_row: Rows
    caption_image: Rows

    def write(self, path: Path) -> None:
        write_arrays(path, self.ranks._asdict() | {name: getattr(self, name) for name in _ROWS})

    @classmethod
    def read(cls, path: Path) -> "RankFile":
        """Raises:
        UserError: the file is missing, holds no ranks, or its arrays do not fit.
        """
        what, remedy = "a table of ranks", "score the retriever"
        kinds = {**dict.fromkeys(("i2t", "t2i", *_ROWS), np.integer), "i2t_precision": np.floating}
        content = read_arrays(path, kinds, what, remedy)
        found = cls(Ranks(*(content[name] for name in Ranks._fields)), *(content[name] for name in _ROWS))
        try:
            found._check()
        except ValueError as error:
            raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
        return found

    def _check(self) -> None:
        i2t, t2i, precision = self.ranks
        if i2t.ndim != 1 or not i2t.shape == precision.shape == self.image_row.shape:
            raise ValueError(f"ranks {i2t.shape} and precisions {precision.shape} of images {self.image_row.shape}")
        if t2i.ndim != 1 or not t2i.shape == self.caption_row.shape == self.caption_image.shape:
            raise ValueError(f"ranks {t2i.shape} of captions {self.caption_row.shape}")
        images, captions = len(i2t), len(t2i)
        if not images or not captions:
            raise ValueError(f"{images} images and {captions} captions")
        if i2t.min() < 1 or i2t.max() > captions or t2i.min() < 1 or t2i.max() > images:
            raise ValueError("a rank is below 1 or beyond the last")
        if not ((precision >= 0) & (precision <= 1)).all():
            raise ValueError("a precision is not between 0 and 1")
        if self.image_row.min() < 0 or self.caption_row.min() < 0:
            raise ValueError("a row is negative")
        if (
            self.caption_image.min() < 0
            or self.caption_image.max() >= images
            or (np.diff(self.caption_image) < 0).any()
        ):
            raise ValueError("the captions are not in the order of the images")


def read_ranks_of(path: Path, embeddings: Embeddings) -> Ranks:
    """The ranks of the images and captions of ``embeddings``.

    Raises:
        UserError: as :meth:`RankFile.read`, or the ranks are of other embeddings.
    """
    found = RankFile.read(path)
    for name in ("image_row", "caption_row"):
        if not np.array_equal(getattr(found, name), getattr(embeddings, name)):
            raise UserError("the ranks are of other embeddings", where=path, remedy="score these embeddings again")
    return found.ranks


COLUMNS = (
    "experiment", "dataset", "split", "model", "decoding", "metric", "value", "low", "high", "n", "protocol",
)  # fmt: skip
_TEXT = ("experiment", "dataset", "split", "model", "decoding", "metric", "protocol")
_NUMBERS = ("value", "low", "high")
_NO_SCORE = {column: [""] for column in _NUMBERS}


def write_summary(path: Path, table: pd.DataFrame) -> None:
    write_text(path, frame_to_csv(table))


def read_summary(path: Path | BinaryIO) -> pd.DataFrame:
    """The columns ``COLUMNS``; NaN where there is no value or no interval.

    Raises:
        UserError: the file is missing, has other columns, or a number is none.
    """
    try:
        table = pd.read_csv(path, dtype=dict.fromkeys(_TEXT, str), keep_default_na=False, na_values=_NO_SCORE)
        if tuple(table.columns) != COLUMNS:
            raise ValueError(f"its columns should be {', '.join(COLUMNS)}")
        table = typed(table)
        if np.isinf(table[list(_NUMBERS)].to_numpy()).any() or (table["n"] < 0).any():
            raise ValueError("a score is infinite or n is negative")
        return table
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy="run the stage that makes it") from error
    except (OSError, ValueError) as error:
        raise UserError(
            "not a summary of scores", where=path, remedy=f"delete it and make it again ({error})"
        ) from error


def typed(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` with the types of its numbers."""
    return table.astype({"value": float, "low": float, "high": float, "n": int})


COMPARISON_FORMAT = "vitcapr-comparison-1"


def write_comparison(path: Path, content: dict[str, Any]) -> None:
    """Write the result of :func:`vitcapr.metrics.comparison.compare_systems`."""
    write_json(path, {"format": COMPARISON_FORMAT, **content})


def read_comparison(path: Path) -> dict[str, Any]:
    """The content that :func:`write_comparison` wrote, and ``format``.

    Raises:
        UserError: the file is missing or is not a comparison.
    """
    what = f"a comparison of format {COMPARISON_FORMAT}"
    return read_record(path, _COMPARISON, what, "compare the two systems").model_dump()


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


class _Comparison(_Record):
    format: Literal["vitcapr-comparison-1"]
    dataset: str
    split: str
    images: _Count
    changed: _Count
    before: _System
    after: _System
    metrics: dict[str, _Difference]
    protocol: str


_COMPARISON = TypeAdapter(_Comparison)


class Judgment(NamedTuple):
    """What people said about a candidate caption of an image; the caption may be another image's.

    Attributes:
        image_id: the image that was shown.
        caption_id: the candidate.
        ratings: higher is better.
    """

    image_id: str
    caption_id: str
    ratings: tuple[float, ...]


def read_expert(path: Path) -> list[Judgment]:
    """Lines ``image<tab>caption id<tab>rating<tab>rating<tab>rating``, three ratings from 1 to 4.

    Source: Hodosh et al., Framing Image Description as a Ranking Task (2013); ExpertAnnotations.txt.

    Raises:
        UserError: the file is missing or a line is another.
    """
    form = "image, caption id and three ratings from 1 to 4"
    return [
        Judgment(*line[:2], tuple(line[2])) for line in _lines(path, form, lambda r: len(r) == 3 and _within(r, 1, 4))
    ]


def read_crowdflower(path: Path) -> list[Judgment]:
    """Lines ``image<tab>caption id<tab>share<tab>yes<tab>no``; the rating is the share of people that said yes.

    Source: Hodosh et al. (2013); CrowdFlowerAnnotations.txt.

    Raises:
        UserError: the file is missing or a line is another.
    """
    form = "image, caption id, share from 0 to 1, number of yes and number of no"
    found = _lines(path, form, lambda r: len(r) == 3 and _within(r[:1], 0, 1))
    return [Judgment(image, caption, (numbers[0],)) for image, caption, numbers in found]


def _within(numbers: list[float], low: float, high: float) -> bool:
    return all(low <= number <= high for number in numbers)


def _lines(path: Path, form: str, fits: Callable[[list[float]], bool]) -> list[tuple[str, str, list[float]]]:
    try:
        text = read_file(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the judgments cannot be read: {error}", where=path, remedy="give the file") from error
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        image, *rest = line.split("\t")
        try:
            numbers = [float(word) for word in rest[1:]]
        except ValueError:
            numbers = []
        if not fits(numbers):
            raise UserError("not a line of judgments", where=f"{path}:{number}", remedy=f"a line has {form}, by tabs")
        found.append((image, rest[0], numbers))
    if not found:
        raise UserError("there is no judgment", where=path, remedy=f"a line has {form}, by tabs")
    return found


PARAPHRASES_CARD, PARAPHRASES_TABLE = "card.json", "table.gz"
"""In one folder; the table has lines by three, a probability and two phrases."""


@dataclass(frozen=True)
class ParaphrasesCard(JsonRecord):
    """What a table of paraphrases is of."""

    FORMAT: ClassVar[str] = "vitcapr-paraphrases-1"
    KIND: ClassVar[str] = "a card of paraphrases"
    REMEDY: ClassVar[str] = "run the stage paraphrases"

    entries: Annotated[int, Field(ge=0)]
    references: str
    """sha256 of the references."""
    table: str
    """sha256 of ``table.gz``."""
