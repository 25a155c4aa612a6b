"""COCO's two caption files as they are: results, and annotations that hold the references.

Image ids may be numbers or words. They are compared as text, so that 139 and "139" are the same image.
"""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vitcapr.artefacts.records import read_record
from vitcapr.errors import UserError


class CocoCaption(BaseModel):
    """A caption of an image; ``oracle`` is set if the references chose it (captions.json of a reranking)."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    image_id: int | str
    caption: str
    oracle: str | None = None


class _Annotations(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    annotations: Annotated[list[CocoCaption], Field(min_length=1)]


_RESULTS = TypeAdapter(Annotated[list[CocoCaption], Field(min_length=1)])
_ANNOTATIONS = TypeAdapter(_Annotations)


def read_coco_results(path: Path) -> dict[str, CocoCaption]:
    """The captions of a results file, ``[{"image_id": 139, "caption": "..."}, ...]``, by image id.

    Raises:
        UserError: the file is missing or holds something else, or an image is in it twice.
    """
    what = 'a results file of COCO, [{"image_id": 139, "caption": "a cat"}]'
    found: dict[str, CocoCaption] = {}
    for entry in read_record(path, _RESULTS, what, "write the results"):
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
