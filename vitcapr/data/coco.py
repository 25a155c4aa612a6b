"""MS COCO captions: the 2014 and 2017 annotation files, or Karpathy's split of the 2014 ones.

X. Chen et al.: Microsoft COCO Captions: Data Collection and Evaluation Server. arXiv:1504.00325.
A. Karpathy, L. Fei-Fei: Deep Visual-Semantic Alignments for Generating Image Descriptions. CVPR 2015.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.data.images import ImageSource
from vitcapr.data.karpathy import SPLITS, annotations_in, check_entries, odd_entry, read_karpathy
from vitcapr.data.splits import parse_split, split_in
from vitcapr.data.tars import Rejected
from vitcapr.errors import UserError
from vitcapr.files import read_field

EXPECTED = "name the folder that holds train2014/, val2014/, train2017/ or val2017/, or one of these"
_KEY = "data.coco.annotations"
_EXPECTED_FILES = "name captions_*.json, not instances_*, person_keypoints_* or image_info_*"


def list_images(
    _: ImageSource, files: Iterable[str], *, annotations: Sequence[str], karpathy: str | None, restval: bool
) -> Listing:
    """The listing of the files that the configuration names: :func:`list_karpathy` or :func:`list_coco`."""
    if karpathy:
        return list_karpathy(files, Path(karpathy), restval=restval)
    if not annotations:
        raise UserError(f"{_KEY} is not set", remedy="list captions_*.json files, or set coco.karpathy")
    for file in annotations:
        if split_in(file) not in ("train", "validation"):
            raise UserError(
                f"{_KEY}: the file name does not tell whether it is train or val",
                where=file,
                remedy="name captions_train2014.json, captions_val2017.json and the like",
            )
    return list_coco(files, [Path(file) for file in annotations])


def list_coco(image_files: Iterable[str], annotations: Sequence[Path], key: str = _KEY) -> Listing:
    """What files in COCO's form list, in the order of the image ids.

    The split of an image is that of its entry or of the name of its file (``captions_val2017.json``), else ``none``.
    COCO publishes no captions of its test images.

    Args:
        image_files: the paths that exist below the image root; ``val2017/x.jpg`` is preferred to ``x.jpg``.
        key: of the configuration, which names the files.
    """
    existing = set(image_files)
    images: dict[str, ListedImage] = {}
    file_of: dict[str, Path] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    counted: Counter[str] = Counter()
    for file in annotations:
        subset = "".join(re.findall(r"(?:train|val|test)\d*", file.name)[:1])
        with annotations_in(file, key, "a caption file of COCO", _EXPECTED_FILES) as content:
            for number, entry in enumerate(read_field(content, "images", list)):
                with odd_entry(rejected, entry, ("id", "file_name"), f"{file.name} images[{number}]"):
                    image = str(read_field(entry, "id", int, str))
                    if image not in images:
                        path = find(existing, subset, read_field(entry, "file_name", str))
                        split = read_field(entry, "split", str) if entry.get("split") else None
                        split = parse_split(split, file) if split else split_in(file.name)
                        images[image] = ListedImage(image, path, split or "none")
                        file_of[image] = file
                    elif file_of[image] == file:
                        rejected.append((image, "duplicate image id"))
                    else:
                        what = f"{key}: image {image} is also in {file_of[image].name}"
                        raise UserError(what, where=file, remedy="name files of one year only")
            for number, entry in enumerate(read_field(content, "annotations", list)):
                with odd_entry(rejected, entry, ("id",), f"{file.name} annotations[{number}]"):
                    image = str(read_field(entry, "image_id", int, str))
                    identity = str(read_field(entry, "id", int, str)) if "id" in entry else f"{image}#{counted[image]}"
                    captions.append(ListedCaption(identity, image, read_field(entry, "caption", str)))
                    counted[image] += 1
            check_entries(captions, rejected)
    in_order = sorted(images, key=lambda image: (int(image), "") if image.isdecimal() else (-1, image))
    return Listing.from_records([images[image] for image in in_order], captions, rejected)


def list_karpathy(image_files: Iterable[str], file: Path, *, restval: bool) -> Listing:
    """What ``dataset_coco.json`` lists, in the order of COCO's image numbers.

    Args:
        image_files: the paths that exist below the image root; ``val2014/x.jpg`` is preferred to ``x.jpg``.
        restval: count the validation images outside Karpathy's validation and test sets as training images;
            otherwise they are in the split ``none``.
    """
    existing = set(image_files)
    splits = {**SPLITS, "restval": "train" if restval else "none"}
    listed, captions, rejected = read_karpathy(file, "data.coco.karpathy", "dataset_coco.json", splits, numbered=True)
    images = [
        ListedImage(image, find(existing, entry.folder, entry.name), entry.split)
        for image, entry in sorted(listed.items(), key=lambda item: int(item[0]))
    ]
    return Listing.from_records(images, captions, rejected)


def find(existing: set[str], subset: str, file_name: str) -> str | None:
    """The path of an image that lies in the folder ``subset`` or beside it; None if it is not there."""
    return next((path for path in (f"{subset}/{file_name}", file_name) if path in existing), None)
