"""MS COCO captions: the 2014 and 2017 annotation files, or Karpathy's split of the 2014 ones.

X. Chen et al.: Microsoft COCO Captions: Data Collection and Evaluation Server. arXiv:1504.00325.
A. Karpathy, L. Fei-Fei: Deep Visual-Semantic Alignments for Generating Image Descriptions. CVPR 2015.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vitcapr.data.collect import KARPATHY_SPLITS, ListedCaption, ListedImage, Listing, Rejected, parse_text
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.files import read_json

EXPECTED = "name the folder that holds train2014/, val2014/, train2017/ or val2017/, or one of these"


def list_images(
    _: ImageSource, files: Iterable[str], *, annotations: Sequence[str], karpathy: str | None, restval: bool
) -> Listing:
    """The listing of the files that the configuration names: :func:`list_karpathy` or :func:`list_coco`."""
    if karpathy:
        return list_karpathy(files, Path(karpathy), restval=restval)
    if not annotations:
        raise UserError("data.coco.annotations is not set", remedy="list captions_*.json files, or set coco.karpathy")
    return list_coco(files, [Path(file) for file in annotations])


def list_coco(image_files: Iterable[str], annotations: Sequence[Path]) -> Listing:
    """What ``captions_*.json`` files list, in the order of COCO's image numbers.

    train files become the split ``train``, val files ``validation``; COCO publishes no captions of its test images.

    Args:
        image_files: the paths that exist below the image root; ``val2017/x.jpg`` is preferred to ``x.jpg``.
        annotations: files whose names tell split and year, as ``captions_val2017.json`` does.
    """
    existing = set(image_files)
    images: dict[int, ListedImage] = {}
    file_of: dict[int, Path] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    for file in annotations:
        split, subset = _split_of(file)
        content = _read(file, "annotations")
        try:
            for entry in content["images"]:
                number = _number(entry["id"])
                if number not in images:
                    path = _find(existing, subset, entry["file_name"])
                    images[number] = ListedImage(str(number), path, split)
                    file_of[number] = file
                elif file_of[number] == file:
                    rejected.append((str(number), "duplicate image id"))
                else:
                    raise UserError(
                        f"data.coco.annotations: image {number} is also in {file_of[number].name}",
                        where=file,
                        remedy="name files of one year only",
                    )
            for entry in content["annotations"]:
                identity, image = _number(entry["id"]), _number(entry["image_id"])
                captions.append(ListedCaption(str(identity), str(image), parse_text(entry["caption"])))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"data.coco.annotations: not a caption file of COCO: {_problem(error)}",
                where=file,
                remedy="name captions_*.json, not instances_*, person_keypoints_* or image_info_*",
            ) from error
    return Listing([images[number] for number in sorted(images)], captions, rejected)


def list_karpathy(image_files: Iterable[str], file: Path, *, restval: bool) -> Listing:
    """What ``dataset_coco.json`` lists, in the order of COCO's image numbers.

    Args:
        image_files: the paths that exist below the image root; ``val2014/x.jpg`` is preferred to ``x.jpg``.
        restval: count the validation images outside Karpathy's validation and test sets as training images;
            otherwise they are in the split ``none``.
    """
    existing = set(image_files)
    splits = {**KARPATHY_SPLITS, "restval": "train" if restval else "none"}
    images: dict[int, ListedImage] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    try:
        for entry in _read(file, "karpathy")["images"]:
            number = _number(entry["cocoid"])
            if number in images:
                rejected.append((str(number), "duplicate image id"))
                continue
            path = _find(existing, entry["filepath"], entry["filename"])
            images[number] = ListedImage(str(number), path, splits[entry["split"]])
            for sentence in entry["sentences"]:
                identity = _number(sentence["sentid"])
                captions.append(ListedCaption(str(identity), str(number), parse_text(sentence["raw"])))
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"data.coco.karpathy: not the file dataset_coco.json: {_problem(error)}",
            where=file,
            remedy="each image needs cocoid, filepath, filename, split and sentences with sentid and raw",
        ) from error
    return Listing([images[number] for number in sorted(images)], captions, rejected)


def _number(value: Any) -> int:
    """An id that is a whole number; 1.5 and true would become those of other images."""
    if type(value) is not int:
        raise TypeError(f"an id is {value!r:.40}, not a whole number")
    return value


def _find(existing: set[str], subset: str, file_name: str) -> str | None:
    return next((path for path in (f"{subset}/{file_name}", file_name) if path in existing), None)


def _split_of(file: Path) -> tuple[str, str]:
    """``captions_val2017.json`` -> (``validation``, ``val2017``)."""
    matches = re.findall(r"(train|val)(\d*)", file.name)
    if len({split for split, _ in matches}) != 1:
        raise UserError(
            "data.coco.annotations: the file name does not tell whether it is train or val",
            where=file,
            remedy="name captions_train2014.json, captions_val2017.json and the like",
        )
    split, year = matches[0]
    return {"train": "train", "val": "validation"}[split], f"{split}{year}"


def _read(file: Path, key: str) -> Any:
    if not file.is_file():
        expected = {"annotations": "captions_*.json files of COCO", "karpathy": "the file dataset_coco.json"}[key]
        raise UserError(f"data.coco.{key}: no such file", where=file, remedy=f"it should name {expected}")
    return read_json(file)


def _problem(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)
