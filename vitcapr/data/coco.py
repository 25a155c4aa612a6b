"""MS COCO captions: the 2014 and 2017 annotation files, and Karpathy's splits.

:func:`read_karpathy` reads Karpathy's files, ``dataset_coco.json`` and ``dataset_flickr30k.json``.

X. Chen et al.: Microsoft COCO Captions: Data Collection and Evaluation Server. arXiv:1504.00325.
A. Karpathy, L. Fei-Fei: Deep Visual-Semantic Alignments for Generating Image Descriptions. CVPR 2015.
"""

import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitcapr.data.archive import OddRow, Rejected
from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.data.images import ImageSource
from vitcapr.data.splits import parse_split, split_in
from vitcapr.errors import UserError
from vitcapr.files import read_field, read_json
from vitcapr.formats.captions import not_counted
from vitcapr.formats.identity import names_one_photograph

EXPECTED = "name the folder that holds train2014/, val2014/, train2017/ or val2017/, or one of these"
_KEY = "data.coco.annotations"
_EXPECTED_FILES = "name captions_*.json, not instances_*, person_keypoints_* or image_info_*"


def list_images(_: ImageSource, files: Iterable[str], *, annotations: Sequence[str], karpathy: str | None) -> Listing:
    """Return the listing of the files that the configuration names: :func:`list_karpathy` or :func:`list_coco`."""
    if karpathy:
        return list_karpathy(files, Path(karpathy))
    if not annotations:
        raise UserError(f"{_KEY} is not set", remedy="list captions_*.json files, or set coco.karpathy")
    split_of = {Path(file): _split_of_name(file) for file in annotations}
    return list_coco(files, split_of)


def _split_of_name(file: str) -> str:
    try:
        split = split_in(Path(file).name)
    except ValueError:
        split = None
    if split is None or split == "test":
        raise UserError(
            f"{_KEY}: the file name does not tell whether it is train or val",
            where=file,
            remedy="name captions_train2014.json, captions_val2017.json and the like",
        )
    return split


def list_coco(image_files: Iterable[str], split_of: Mapping[Path, str | None], key: str = _KEY) -> Listing:
    """Return the listing of files in COCO's form, in the order of the image ids.

    The split of an image is that of its entry, or that of its file, else ``none``. COCO publishes no captions of its
    test images.

    Args:
        image_files: the paths that exist below the image root; see :func:`find`.
        split_of: the split of each file.
        key: of the configuration, which names the files.
    """
    existing = set(image_files)
    by_name = names_once(existing)
    listed: dict[tuple[Path, str], ListedImage] = {}
    captions: list[tuple[Path, ListedCaption]] = []
    rejected: Rejected = []
    counted: Counter[tuple[Path, str]] = Counter()
    for file, split in split_of.items():
        told = re.search(r"(?:train|val|test)\d*", file.name)
        subset = told.group() if told else ""
        form = "a caption file of COCO"
        with annotations_in(file, key, form, _EXPECTED_FILES, captions, rejected) as content:
            for number, entry in enumerate(read_field(content, "images", list)):
                with odd_entry(rejected, entry, ("id", "file_name"), f"{file.name} images[{number}]"):
                    image = str(read_field(entry, "id", int, str))
                    name = read_field(entry, "file_name", str)
                    if (file, image) in listed:
                        rejected.append((image, "duplicate image id"))
                        continue
                    path = find(existing, by_name, subset, name)
                    own = parse_split(read_field(entry, "split", str), file) if entry.get("split") else split
                    listed[file, image] = ListedImage(image, path, own or "none", None if path else name)
            for number, entry in enumerate(read_field(content, "annotations", list)):
                with odd_entry(rejected, entry, ("id",), f"{file.name} annotations[{number}]"):
                    image = str(read_field(entry, "image_id", int, str))
                    identity = (
                        str(read_field(entry, "id", int, str)) if "id" in entry else f"{image}#{counted[file, image]}"
                    )
                    if reason := not_counted(entry):
                        rejected.append((identity, reason))
                        continue
                    captions.append((file, ListedCaption(identity, image, read_field(entry, "caption", str))))
                    counted[file, image] += 1
    image_of = _one_identity(listed, key)
    unique = {image.image_id: image for image in image_of.values()}
    in_order = sorted(unique, key=lambda image: (int(image), "") if image.isdecimal() else (-1, image))
    owned = [
        caption._replace(image_id=image_of[file, caption.image_id].image_id)
        if (file, caption.image_id) in image_of
        else caption
        for file, caption in captions
    ]
    listing = Listing.from_records([unique[image] for image in in_order], owned, rejected)
    if unique.keys() == {image for _, image in listed}:
        return listing
    local = "image ids are local to their files, so images are called by their paths"
    return replace(listing, notes=[local, *listing.notes])


def _one_identity(listed: Mapping[tuple[Path, str], ListedImage], key: str) -> dict[tuple[Path, str], ListedImage]:
    """Give each image of several files one id: that of its file, or its path if ids are local to the files.

    Raises:
        UserError: an image is in two files, under two names or in two splits.
    """
    first: dict[str, tuple[Path, str]] = {}
    paths: dict[str, str] = {}
    local = False
    for (file, image), one in listed.items():
        path = one.path or one.tried or ""
        known = paths.setdefault(image, path)
        local |= known != path and not names_one_photograph(known, path)
        if known != path and names_one_photograph(known, path):
            what = f"{key}: image {image} is also in {first[known][0].name}, as '{known}'"
            raise UserError(what, where=file, remedy="name files of one year only")
        if path in first and listed[first[path]].split != one.split:
            what = f"{key}: image {image} is also in {first[path][0].name}, in another split"
            raise UserError(what, where=file, remedy="name files of one year only")
        first.setdefault(path, (file, image))
    chosen = {path: listed[place]._replace(image_id=path) if local else listed[place] for path, place in first.items()}
    return {place: chosen[one.path or one.tried or ""] for place, one in listed.items()}


def list_karpathy(image_files: Iterable[str], file: Path) -> Listing:
    """Return the listing of ``dataset_coco.json``, in the order of COCO's image numbers.

    As in the literature, the validation images outside Karpathy's validation and test sets are training images.

    Args:
        image_files: the paths that exist below the image root; ``val2014/x.jpg`` is preferred to ``x.jpg``.
    """
    existing = set(image_files)
    splits = {**KARPATHY_SPLITS, "restval": "train"}
    listed, captions, rejected = read_karpathy(file, "data.coco.karpathy", "dataset_coco.json", splits, numbered=True)
    images = []
    for _, image in sorted(listed.items(), key=lambda item: int(item[0])):
        path = next((path for path in (image.path, image.tried) if path in existing), None)
        images.append(image._replace(path=path, tried=None if path else image.tried))
    return Listing.from_records(images, captions, rejected)


def find(existing: set[str], by_name: Mapping[str, str], subset: str, file_name: str) -> str | None:
    """Return the path of an image, None if it is not there.

    The image is in the folder ``subset`` or beside it; otherwise the only file of this name counts, unless its folder
    belongs to another split than ``subset``. Unicode's forms of a letter are one letter.
    """
    for path in (f"{subset}/{file_name}", file_name):
        if path in existing:
            return path
    only = by_name.get(unicodedata.normalize("NFC", file_name), "")
    try:
        splits = {split_in(posixpath.dirname(only)), split_in(subset)} - {None}
    except ValueError:
        return None
    return only if only and len(splits) < 2 else None


def names_once(paths: Iterable[str]) -> dict[str, str]:
    """Path of each file name, in Unicode's form NFC, that is there once."""
    names = [unicodedata.normalize("NFC", posixpath.basename(path)) for path in paths]
    counted = Counter(names)
    return {name: path for name, path in zip(names, paths, strict=True) if counted[name] == 1}


KARPATHY_SPLITS = {"train": "train", "val": "validation", "test": "test"}
"""Split of each name in the files. COCO adds ``restval``."""


def read_karpathy(
    file: Path, key: str, expected: str, splits: Mapping[str, str] = KARPATHY_SPLITS, *, numbered: bool = False
) -> tuple[dict[str, ListedImage], list[ListedCaption], Rejected]:
    """Return the images by id, the captions, and (item, reason) of everything that is left out.

    An image has its path in the file and its name in ``tried``.

    Args:
        key: of the configuration, which names the file.
        expected: the name of the published file.
        numbered: the ids are COCO's numbers; otherwise an image's id is its file name, and a caption's is that name,
            ``#`` and its number.
    """
    images: dict[str, ListedImage] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    form = "whose images have filename, split and sentences with raw; COCO's also cocoid, filepath and sentid"
    what, remedy = f"the file {expected}", f"name {expected}, {form}"
    with annotations_in(file, key, what, remedy, captions, rejected) as content:
        for number, entry in enumerate(read_field(content, "images", list)):
            with odd_entry(rejected, entry, ("cocoid", "filename"), f"{file.name} images[{number}]"):
                name = read_field(entry, "filename", str)
                image = str(read_field(entry, "cocoid", int)) if numbered else name
                if image in images:
                    rejected.append((image, "duplicate image id"))
                    continue
                folder = read_field(entry, "filepath", str) if numbered else ""
                sentences, split = read_field(entry, "sentences", list), read_field(entry, "split", str)
                if split not in splits:
                    raise TypeError(f"unknown split '{split}'")
                images[image] = ListedImage(image, f"{folder}/{name}", splits[split], name)
                for place, sentence in enumerate(sentences):
                    with odd_entry(rejected, sentence, ("sentid",) if numbered else (), f"{name}#{place}"):
                        identity = str(read_field(sentence, "sentid", int)) if numbered else f"{name}#{place}"
                        captions.append(ListedCaption(identity, image, read_field(sentence, "raw", str)))
    return images, captions, rejected


@contextmanager
def annotations_in(
    file: Path, key: str, what: str, remedy: str, captions: Sequence[object], rejected: Rejected
) -> Iterator[Any]:
    """Yield the content of a JSON file.

    A file that has not the form of ``what``, or gives no ``captions``, raises a UserError that names ``key``.
    """
    if not file.is_file():
        raise UserError(f"{key}: no such file", where=file, remedy=remedy)
    try:
        yield read_json(file)
        if not captions and (odd := [row for row in rejected if isinstance(row[1], OddRow)]):
            raise TypeError(f"{odd[0][1]} ({odd[0][0]})")
    except TypeError as error:
        raise UserError(f"{key}: not {what}: {error}", where=file, remedy=remedy) from error


@contextmanager
def odd_entry(rejected: Rejected, entry: Any, ids: Sequence[str], place: str) -> Iterator[None]:
    """Leave out an entry that cannot be read; it is listed by the first of its ``ids``, or else by its place."""
    try:
        yield
    except TypeError as error:
        known = [entry[name] for name in ids if isinstance(entry, dict) and type(entry.get(name)) in (int, str)]
        rejected.append((str(known[0] if known else place), OddRow(error)))
