"""``captions.json`` of a split, the attention at its words, and COCO's files.

Image ids in COCO's files may be numbers or words. They are compared as text, so that 139 and "139" are the same image.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter

from vitcapr.errors import UserError
from vitcapr.files import write_json
from vitcapr.formats.containers import read_arrays, write_arrays
from vitcapr.formats.identity import match_images
from vitcapr.formats.records import read_record, reading

DECIMALS = 6
"""Beyond these, the arithmetic of a device may show: scores are compared and written so far."""


_NOT_COUNTED = (
    *("rejected", "precanned", "ignored", "ignore", "deleted", "discarded", "excluded", "invalid", "spam"),
    *("flagged", "hidden", "skipped"),
)
_COUNTED = ("valid", "accepted", "approved")
_MARKS = {f"{begin}{word}": word in _NOT_COUNTED for word in (*_NOT_COUNTED, *_COUNTED) for begin in ("is", "")}
"""Field -> its value if the entry does not count. VizWiz writes ``is_rejected`` and ``is_precanned``."""
_STATUS = ("status", "state", "decision")
"""Fields whose text is one of the words."""
_FIELDS = [name for word in (*_NOT_COUNTED, *_COUNTED) for name in (word, f"is_{word}")] + list(_STATUS)
ENTRY_MARKS = {
    name: (
        name,
        name.title(),
        name.upper(),
        name.replace("_", ""),
        name.title().replace("_", ""),
        f"is{name[3:].title()}",
    )
    for name in _FIELDS
}
"""Column of a table that may say that a row does not count -> its spellings."""
_WRITTEN = dict.fromkeys(("true", "1", "1.0", "yes"), True) | dict.fromkeys(("false", "0", "0.0", "no"), False)


def not_counted(entry: Mapping[str, Any]) -> str:
    """Return the reason why an entry does not count, as its own fields say; else an empty text.

    >>> not_counted({"caption": "a dog", "is_rejected": True})
    'its file says is_rejected: true'
    """
    for field, value in entry.items():
        name, said = field.lower().replace("_", ""), str(value).strip().lower()
        marked = name in _MARKS and _WRITTEN.get(said) is _MARKS[name]
        if marked or (name in _STATUS and said in _NOT_COUNTED):
            return f"its file says {field}: {said}"
    return ""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


Id = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]


class CocoCaption(_Record):
    """An image and its caption, as any captioner may write them.

    Attributes:
        oracle: how the references chose this caption; None for an honest result.
    """

    image_id: Id
    caption: str
    oracle: str | None = None


class Candidate(BaseModel):
    """One caption of an image; a stage may add numbers, such as ``cosine``.

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


class DecodedCaption(CocoCaption):
    """The best caption of an image and all its candidates, best first."""

    tokens: tuple[str, ...]
    candidates: Annotated[tuple[Candidate, ...], Field(min_length=1)]

    @property
    def captions(self) -> list[str]:
        """Captions of the candidates."""
        return [candidate.caption for candidate in self.candidates]


class _NamedImage(_Record):
    id: Id
    file_name: Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")] = ""


class _Reference(_Record):
    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    image_id: Id
    caption: str


class _Annotations(_Record):
    images: list[_NamedImage] = []
    annotations: Annotated[list[_Reference], Field(min_length=1)]


class _Category(_Record):
    id: int
    name: str


class _Instance(_Record):
    image_id: Id
    category_id: int


class _Instances(_Record):
    images: list[_NamedImage]
    annotations: list[_Instance]
    categories: Annotated[list[_Category], Field(min_length=1)]


Entry = TypeVar("Entry", CocoCaption, DecodedCaption)
_RESULTS, _CAPTIONS = TypeAdapter(list[CocoCaption]), TypeAdapter(list[DecodedCaption])
_ANNOTATIONS, _INSTANCES = TypeAdapter(_Annotations), TypeAdapter(_Instances)
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
        described = [_describe(candidate) for candidate in candidates]
        entries.append({"image_id": image_id, **described[0], **marks, "candidates": described})
    write_json(path, entries)


def _describe(candidate: Candidate) -> dict[str, Any]:
    values = candidate.model_dump()
    values["token_log_probs"] = [round(value, DECIMALS) for value in candidate.token_log_probs]
    return {name: round(value, DECIMALS) if isinstance(value, float) else value for name, value in values.items()}


def read_results(path: Path) -> dict[str, CocoCaption]:
    """Return the captions of a file in COCO's result format, by image id.

    The format is ``[{"image_id": 139, "caption": "..."}, ...]``.
    """
    what = 'a results file of COCO, [{"image_id": 139, "caption": "a cat"}]'
    return _by_image(read_record(path, _RESULTS, what, "write the captions"), path)


def read_captions(path: Path) -> dict[str, DecodedCaption]:
    """Return the captions that :func:`write_captions` wrote, by image id."""
    return _by_image(read_record(path, _CAPTIONS, "a file of captions with candidates", _REMEDY), path)


def _by_image(entries: list[Entry], path: Path) -> dict[str, Entry]:
    captions: dict[str, Entry] = {}
    for entry in entries:
        if entry.image_id in captions:
            raise UserError("an image has two captions", where=f"{path}, image {entry.image_id}", remedy="keep one")
        captions[entry.image_id] = entry
    return captions


def read_coco_references(path: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the references of every image of an annotations file, and the file name of each image id.

    The format is ``{"annotations": [{"image_id", "caption"}, ...]}``. File names are known where the file has
    ``images``. An image whose captions do not count, as the file says, has none.
    """
    what = 'an annotations file of COCO, {"annotations": [{"image_id": 139, "caption": "a cat"}]}'
    references: dict[str, list[str]] = {}
    content = read_record(
        path, _ANNOTATIONS, what, "give such a file, or one that data.table.captions reads, and score"
    )
    for entry in content.annotations:
        of_image = references.setdefault(entry.image_id, [])
        if not not_counted(entry.model_extra or {}):
            of_image.append(entry.caption)
    return references, _file_names(content.images, path, {})


def _file_names(images: Iterable[_NamedImage], path: Path, known: dict[str, str]) -> dict[str, str]:
    """Return the file name of each image by its id, with the ``known`` ones; a UserError if an id has two names."""
    for image in images:
        if image.file_name and known.setdefault(image.id, image.file_name) != image.file_name:
            what = f"image {image.id} is '{known[image.id]}' and '{image.file_name}'"
            raise UserError(what, where=path, remedy="give every image an id of its own")
    return known


def read_instances(paths: Sequence[Path], images: Mapping[str, str] | None = None) -> dict[str, frozenset[str]]:
    """Return the names of the categories of the objects in every image of ``instances_*.json`` files, by image id.

    An image may be in several files.

    Args:
        images: id and file name of the images that are asked for, whose ids the files may not have; None: the images
            of the files, by their own ids.
    """
    what = 'instance annotations of COCO, {"images", "annotations": [{"image_id", "category_id"}], "categories"}'
    objects: dict[str, frozenset[str]] = {}
    files: dict[str, str] = {}
    for path in paths:
        content = read_record(path, _INSTANCES, what, "give instances_*.json of COCO, and score")
        _file_names(content.images, path, files)
        names = {category.id: category.name for category in content.categories}
        here: dict[str, set[str]] = {image.id: set() for image in content.images}
        for instance in content.annotations:
            if instance.image_id not in here or instance.category_id not in names:
                problem = "an annotation names an image or a category that the file does not list"
                raise UserError(problem, where=f"{path}, image {instance.image_id}", remedy="give all of the file")
            here[instance.image_id].add(names[instance.category_id])
        for image, categories in here.items():
            objects[image] = objects.get(image, frozenset()) | categories
    if images is None:
        return objects
    asked, known = list(images), list(objects)
    theirs = [known, [files.get(image, image) for image in known]]
    rows = match_images([asked, list(images.values())], theirs, "the instances")
    return {image: objects[known[row]] for image, row in zip(asked, rows, strict=True) if row is not None}


@dataclass(frozen=True, eq=False)
class AttentionTable:
    """``attention.npz``: attention of the words of B captions over a grid of patches.

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
        if self.weights.ndim != 2 or self.weights.shape[1] != self.grid[0] * self.grid[1]:
            raise ValueError(f"weights of shape {self.weights.shape} for {self.grid[0]} x {self.grid[1]} patches")
        if self.offsets.shape != (len(self.image_row) + 1,) or self.offsets[-1] != len(self.weights):
            raise ValueError("the offsets do not cut the weights into captions")

    def of_row(self, row: int) -> NDArray[np.floating] | None:
        """Return the attention (L, h, w) of the caption of an image row; None if there is none."""
        places = np.flatnonzero(self.image_row == row)
        if not len(places):
            return None
        return self.weights[self.offsets[places[0]] : self.offsets[places[0] + 1]].reshape(-1, *self.grid)

    def of_caption(self, row: int, caption: DecodedCaption, where: Path) -> NDArray[np.floating]:
        """Return the attention (L, h, w) of the L words of a caption.

        Raises:
            UserError: the table has none for the row, or that of another caption; names ``where``, its file.
        """
        weights = self.of_row(row)
        if weights is None or len(weights) != len(caption.tokens):
            what = "no attention" if weights is None else f"attention for {len(weights)} words"
            raise UserError(
                f"{what} for the {len(caption.tokens)} words of image {caption.image_id}",
                where=where,
                remedy="give the captions and the attention of one decoding",
            )
        return weights


def write_attention(path: Path, table: AttentionTable) -> None:
    """Write the table; the same table gives the same bytes."""
    arrays = {
        "weights": table.weights,
        "offsets": np.asarray(table.offsets, np.int64),
        "image_row": np.asarray(table.image_row, np.int32),
        "grid": np.asarray(table.grid, np.int64),
    }
    write_arrays(path, arrays)


def read_attention(path: Path) -> AttentionTable:
    kinds = {"weights": np.floating, "offsets": np.integer, "image_row": np.integer, "grid": np.integer}
    what, remedy = "a table of attention", "run the decode stage with decoding.attention"
    arrays = read_arrays(path, kinds, what, remedy)
    with reading(path, what, remedy):
        height, width = map(int, arrays.pop("grid"))
        return AttentionTable(**arrays, grid=(height, width))
