"""Flickr8k: 8,091 photographs with five captions each.

M. Hodosh, P. Young, J. Hockenmaier: Framing Image Description as a Ranking Task. JAIR 47, 2013. The official
lists put 6,000 / 1,000 / 1,000 images into train / validation ("dev") / test; 91 are in none of them.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from vitcapr.data.archive import Archive, DamagedMember
from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.data.flickr import parse_token_file, pictures_by_name, random_splits
from vitcapr.errors import UserError

OFFICIAL_LISTS = {
    "Flickr_8k.trainImages.txt": "train",
    "Flickr_8k.devImages.txt": "validation",
    "Flickr_8k.testImages.txt": "test",
}
SIZES = (6000, 1000, 1000)
OFFICIAL_CAPTIONS = "Flickr8k.token.txt"
KAGGLE_CAPTIONS = "captions.txt"


def list_flickr8k(image_files: Iterable[str], text: Path, *, splits: str, seed: int) -> Listing:
    """The listing of the data set, in the order of the image file names.

    An image's id is its file name, as in the corpus; a caption's id is that name, ``#`` and its number.

    Args:
        image_files: the paths that exist below the image root, relative to it.
        text: the official folder or zip, a folder with Kaggle's ``captions.txt``, or either captions file itself, with
            the split lists beside it.
        splits: ``official``, or ``random`` for :func:`vitcapr.data.flickr.random_splits` of the images that have
            captions.
        seed: of the random split.

    Raises:
        UserError: no captions or no lists there, or a list repeats an image of another.
    """
    paths = pictures_by_name(image_files)
    files, captions_name = _text_files(text)
    captions, rejected = _parse_captions(files, captions_name, text)
    if splits == "official":
        split_of = _official_splits(files, text)
    else:
        captioned = {caption.image_id for caption in captions}
        split_of = random_splits([name for name in paths if name in captioned], seed, SIZES)
    names = sorted(paths.keys() | split_of.keys())
    images = [ListedImage(name, paths.get(name), split_of.get(name, "none")) for name in names]
    return Listing(images, captions, rejected)


def _text_files(text: Path) -> tuple[Mapping[str, Callable[[], bytes]], str]:
    """What can be read beside the captions (name -> reader), and the name of the captions file."""
    if text.is_file() and text.suffix.lower() != ".zip":
        return {path.name: path.read_bytes for path in text.parent.iterdir() if path.is_file()}, text.name
    files: dict[str, Callable[[], bytes]]
    if text.is_dir():
        files = {path.name: path.read_bytes for path in text.iterdir() if path.is_file()}
    elif text.exists():
        archive = Archive(text)
        files = {PurePosixPath(path).name: partial(archive.read, path) for path in archive.files()}
    else:
        raise _wrong_text("no such file or folder", text)
    for name in (OFFICIAL_CAPTIONS, KAGGLE_CAPTIONS):
        if name in files:
            return files, name
    raise _wrong_text(f"neither {OFFICIAL_CAPTIONS} nor {KAGGLE_CAPTIONS} is there", text)


def _wrong_text(problem: str, text: Path) -> UserError:
    return UserError(
        f"data.flickr8k.text: {problem}",
        where=text,
        remedy="name the folder Flickr8k_text, Flickr8k_text.zip or Kaggle's captions.txt",
    )


def _read_text(files: Mapping[str, Callable[[], bytes]], name: str, text: Path) -> str:
    try:
        return files[name]().decode("utf-8-sig")
    except (OSError, DamagedMember, UnicodeDecodeError) as error:
        raise UserError(f"data.flickr8k.text: {name} cannot be read: {error}", where=text) from error


def _parse_captions(
    files: Mapping[str, Callable[[], bytes]], name: str, text: Path
) -> tuple[list[ListedCaption], list[tuple[str, str]]]:
    content = _read_text(files, name, text)
    first_line = next(iter(content.splitlines()), "").strip().lower()
    if first_line == "image,caption":
        return _parse_kaggle(content, name)
    if "\t" in first_line:
        return parse_token_file(content, name)
    raise _wrong_text(f"{name} begins neither with 'image,caption' nor with 'image#number<tab>caption'", text)


def _parse_kaggle(content: str, name: str) -> tuple[list[ListedCaption], list[tuple[str, str]]]:
    """Kaggle's copy has lost the caption numbers; they are counted again, in the order of the file."""
    captions: list[ListedCaption] = []
    rejected: list[tuple[str, str]] = []
    count: Counter[str] = Counter()
    rows = csv.reader(io.StringIO(content, newline=""))
    next(rows)
    for row in _readable(rows, name, rejected):
        if not row:
            continue
        image_id = row[0].strip()
        if len(row) < 2 or not image_id:
            rejected.append((f"{name}:{rows.line_num}", "not a line 'image,caption'"))
            continue
        captions.append(ListedCaption(f"{image_id}#{count[image_id]}", image_id, ",".join(row[1:])))
        count[image_id] += 1
    return captions, rejected


def _readable(rows: Any, name: str, rejected: list[tuple[str, str]]) -> Iterator[list[str]]:
    """The rows up to one that is no CSV; what follows it cannot be told apart."""
    try:
        yield from rows
    except csv.Error as error:
        rejected.append((f"{name}:{rows.line_num}", f"the rest is no CSV: {error}"))


def _official_splits(files: Mapping[str, Callable[[], bytes]], text: Path) -> dict[str, str]:
    if missing := [name for name in OFFICIAL_LISTS if name not in files]:
        raise UserError(
            f"data.flickr8k.splits: official needs {', '.join(missing)} beside the captions",
            where=text,
            remedy="put the official lists there, or set data.flickr8k.splits: random",
        )
    split_of: dict[str, str] = {}
    for name, split in OFFICIAL_LISTS.items():
        for image_id in _read_text(files, name, text).split():
            if split_of.setdefault(image_id, split) != split:
                raise UserError(
                    f"image '{image_id}' is in the {split_of[image_id]} split and in the {split} split",
                    where=text / name,
                    remedy="an image may be in one list only",
                )
    return split_of
