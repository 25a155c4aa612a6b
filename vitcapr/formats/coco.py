"""COCO's files as they are: results, annotations that hold the references, and annotations of object instances.

Image ids may be numbers or words. They are compared as text, so that 139 and "139" are the same image.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vitcapr.errors import UserError
from vitcapr.formats.records import read_record


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
