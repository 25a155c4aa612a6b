"""``captions.json``: the captions of a split, in COCO's result format with the scores of the decoding."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vitcapr.errors import UserError
from vitcapr.files import write_json
from vitcapr.formats.records import read_record

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
