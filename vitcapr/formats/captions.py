"""``captions.json`` of a split, the attention at its words, and COCO's files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vitcapr.errors import UserError
from vitcapr.files import write_json
from vitcapr.formats.containers import read_arrays, read_record, write_arrays

DECIMALS = 6
"""Beyond these, the arithmetic of a device may show: scores are compared and written so far."""


class CocoResult(BaseModel):
    """An image and its caption, as any captioner may write them.

    Attributes:
        oracle: how the references chose this caption; None for an honest result.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    image_id: str
    caption: str
    oracle: str | None = None


class Candidate(BaseModel):
    """One caption of an image. A stage may add numbers of its own, such as ``cosine``.

    Attributes:
        tokens: the words.
        token_log_probs: of the words and of the end token, so one number more than ``tokens``.
        log_prob: their sum.
        score: what the candidates are ordered by.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", allow_inf_nan=False)

    __pydantic_extra__: dict[str, float]

    caption: str
    tokens: tuple[str, ...]
    token_log_probs: tuple[float, ...]
    log_prob: float
    score: float


class DecodedCaption(BaseModel):
    """The best caption of an image and all its candidates, best first."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    image_id: str
    caption: str
    tokens: tuple[str, ...]
    candidates: Annotated[tuple[Candidate, ...], Field(min_length=1)]


Entry = TypeVar("Entry", CocoResult, DecodedCaption)
_RESULTS, _CAPTIONS = TypeAdapter(list[CocoResult]), TypeAdapter(list[DecodedCaption])
_REMEDY = "run the decode stage"


def write_captions(
    path: Path, captioned: Iterable[tuple[str, Sequence[Candidate]]], *, oracle: str | None = None
) -> None:
    """Write an entry for each image: its best caption and all its candidates.

    Args:
        captioned: image ids and their candidates, the best one first.
        oracle: how the references chose the captions; None for an honest result.
    """
    marks = {} if oracle is None else {"oracle": oracle}
    entries = []
    for image_id, candidates in captioned:
        described = [_described(candidate) for candidate in candidates]
        entries.append({"image_id": image_id, **described[0], **marks, "candidates": described})
    write_json(path, entries)


def read_results(path: Path) -> dict[str, CocoResult]:
    """The captions of any file in COCO's result format, by image id.

    Raises:
        UserError: the file is missing or holds something else, or an image is in it twice.
    """
    return _by_image(read_record(path, _RESULTS, "a file of captions", _REMEDY), path)


def read_captions(path: Path) -> dict[str, DecodedCaption]:
    """The captions that :func:`write_captions` wrote, by image id.

    Raises:
        UserError: the file is missing or holds something else, or an image is in it twice.
    """
    found = _by_image(read_record(path, _CAPTIONS, "a file of captions with candidates", _REMEDY), path)
    for entry in found.values():
        if (entry.caption, entry.tokens) != (entry.candidates[0].caption, entry.candidates[0].tokens):
            where = f"{path}, image {entry.image_id}"
            raise UserError("the caption is not its first candidate", where=where, remedy=f"{_REMEDY} again")
        for candidate in entry.candidates:
            if len(candidate.token_log_probs) != len(candidate.tokens) + 1:
                what = f"{len(candidate.token_log_probs)} log-probabilities for {len(candidate.tokens)} words"
                raise UserError(what, where=f"{path}, image {entry.image_id}", remedy=f"{_REMEDY} again")
    return found


def _by_image(entries: list[Entry], path: Path) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.image_id in found:
            where = f"{path}, image {entry.image_id}"
            raise UserError("an image is in the file twice", where=where, remedy=f"{_REMEDY} again")
        found[entry.image_id] = entry
    return found


def _described(candidate: Candidate) -> dict[str, Any]:
    values = candidate.model_dump()
    values["token_log_probs"] = [round(value, DECIMALS) for value in candidate.token_log_probs]
    return {name: round(value, DECIMALS) if isinstance(value, float) else value for name, value in values.items()}


_ATTENTION, _ATTENTION_REMEDY = "a table of attention", "run the decode stage with decoding.attention"


@dataclass(frozen=True, eq=False)
class AttentionTable:
    """Attention of the words of B captions over a grid of patches.

    Attributes:
        weights: (words of all captions, h * w); float16 in the file.
        offsets: (B + 1,) int64, where the words of each caption begin in ``weights``.
        image_row: (B,) int32, the row of each caption's image.
        grid: h, w; (2,) int64 in the file.
    """

    weights: NDArray[np.floating]
    offsets: NDArray[np.integer]
    image_row: NDArray[np.integer]
    grid: tuple[int, int]

    def __post_init__(self) -> None:
        patches = self.grid[0] * self.grid[1]
        if min(self.grid) < 1 or self.weights.ndim != 2 or self.weights.shape[1] != patches:
            raise ValueError(f"weights of shape {self.weights.shape} for {self.grid[0]} x {self.grid[1]} patches")
        if self.image_row.ndim != 1 or self.offsets.shape != (len(self.image_row) + 1,):
            raise ValueError(f"offsets of shape {self.offsets.shape} for images of shape {self.image_row.shape}")
        ends = self.offsets[0], self.offsets[-1]
        if ends != (0, len(self.weights)) or (np.diff(self.offsets) < 0).any():
            raise ValueError("the offsets do not cut the weights into captions")
        if (self.image_row < 0).any() or len(np.unique(self.image_row)) != len(self.image_row):
            raise ValueError("an image row is negative or occurs twice")
        if not np.isfinite(self.weights).all():
            raise ValueError("a weight is not finite")

    def of_row(self, row: int) -> NDArray[np.floating] | None:
        """The attention (L, h, w) of the caption of an image row; None if there is none."""
        found = np.flatnonzero(self.image_row == row)
        if not len(found):
            return None
        return self.weights[self.offsets[found[0]] : self.offsets[found[0] + 1]].reshape(-1, *self.grid)


def write_attention(path: Path, table: AttentionTable) -> None:
    """The same table gives the same bytes."""
    arrays = {
        "weights": table.weights,
        "offsets": np.asarray(table.offsets, np.int64),
        "image_row": np.asarray(table.image_row, np.int32),
        "grid": np.asarray(table.grid, np.int64),
    }
    write_arrays(path, arrays)


def read_attention(path: Path) -> AttentionTable:
    """Raises:
    UserError: the file is missing or is not a table of attention.
    """
    kinds = {"weights": np.floating, "offsets": np.integer, "image_row": np.integer, "grid": np.integer}
    arrays = read_arrays(path, kinds, _ATTENTION, _ATTENTION_REMEDY)
    grid = arrays.pop("grid")
    try:
        height, width = (int(side) for side in grid)
        return AttentionTable(**arrays, grid=(height, width))
    except (ValueError, TypeError) as error:
        raise UserError(f"not {_ATTENTION}: {error}", where=path, remedy=f"{_ATTENTION_REMEDY} again") from error


class CocoCaption(BaseModel):
    """A caption of an image; ``oracle`` is set if the references chose it (captions.json of a reranking)."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    image_id: int | str
    caption: str
    oracle: str | None = None


class _Annotations(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    annotations: Annotated[list[CocoCaption], Field(min_length=1)]


class _Category(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    id: int
    name: str


class _Image(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    id: int | str


class _Instance(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    image_id: int | str
    category_id: int


class _Instances(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    images: list[_Image]
    annotations: list[_Instance]
    categories: Annotated[list[_Category], Field(min_length=1)]


_INSTANCES = TypeAdapter(_Instances)
_COCO_RESULTS = TypeAdapter(Annotated[list[CocoCaption], Field(min_length=1)])
_ANNOTATIONS = TypeAdapter(_Annotations)


def read_coco_results(path: Path) -> dict[str, CocoCaption]:
    """The captions of a results file, ``[{"image_id": 139, "caption": "..."}, ...]``, by image id.

    Raises:
        UserError: the file is missing or holds something else, or an image is in it twice.
    """
    what = 'a results file of COCO, [{"image_id": 139, "caption": "a cat"}]'
    found: dict[str, CocoCaption] = {}
    for entry in read_record(path, _COCO_RESULTS, what, "write the results"):
        if str(entry.image_id) in found:
            raise UserError("an image has two captions", where=f"{path}, image {entry.image_id}", remedy="keep one")
        found[str(entry.image_id)] = entry
    return found


def read_coco_references(path: Path) -> dict[str, list[str]]:
    """The references of every image of an annotations file, ``{"annotations": [{"image_id", "caption"}, ...]}``.

    Raises:
        UserError: the file is missing or holds something else.
    """
    what = 'an annotations file of COCO, {"annotations": [{"image_id": 139, "caption": "a cat"}]}'
    references: dict[str, list[str]] = {}
    for entry in read_record(path, _ANNOTATIONS, what, "fetch the annotations").annotations:
        references.setdefault(str(entry.image_id), []).append(entry.caption)
    return references


def read_instances(paths: Sequence[Path]) -> dict[str, frozenset[str]]:
    """The names of the categories of the objects in every image of ``instances_*.json`` files, by image id.

    An image may be in several files.

    Raises:
        UserError: the file is missing or holds something else.
    """
    found: dict[str, frozenset[str]] = {}
    for path in paths:
        for image, categories in _instances_of(path).items():
            found[image] = categories | found.get(image, frozenset())
    return found


def _instances_of(path: Path) -> dict[str, frozenset[str]]:
    what = 'instance annotations of COCO, {"images", "annotations": [{"image_id", "category_id"}], "categories"}'
    content = read_record(path, _INSTANCES, what, "fetch the annotations")
    names = {category.id: category.name for category in content.categories}
    found: dict[str, set[str]] = {str(image.id): set() for image in content.images}
    for instance in content.annotations:
        if str(instance.image_id) not in found or instance.category_id not in names:
            what = "an annotation names an image or a category that the file does not list"
            raise UserError(what, where=f"{path}, image {instance.image_id}", remedy="fetch the annotations again")
        found[str(instance.image_id)].add(names[instance.category_id])
    return {image: frozenset(categories) for image, categories in found.items()}
