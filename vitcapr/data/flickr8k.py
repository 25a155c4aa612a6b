"""Flickr8k: 8,091 photographs with five captions each. Flickr30k reads its caption file and pictures as well.

M. Hodosh, P. Young, J. Hockenmaier: Framing Image Description as a Ranking Task. JAIR 47, 2013. The official
lists put 6,000 / 1,000 / 1,000 images into train / validation ("dev") / test; 91 are in none of them.
"""

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from vitcapr.data.archive import Archive, DamagedMember
from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.data.images import SUFFIXES, ImageSource
from vitcapr.data.splits import put_in_split, random_splits
from vitcapr.data.tars import OddRow, Rejected
from vitcapr.errors import UserError
from vitcapr.files import decode_text, read_text

OFFICIAL_LISTS = {
    "Flickr_8k.trainImages.txt": "train",
    "Flickr_8k.devImages.txt": "validation",
    "Flickr_8k.testImages.txt": "test",
}
SIZES = (6000, 1000, 1000)
OFFICIAL_CAPTIONS, KAGGLE_CAPTIONS = "Flickr8k.token.txt", "captions.txt"
_KEY = "data.flickr8k.text"
EXPECTED = "name the folder Flicker8k_Dataset or Flickr8k_Dataset.zip"


def list_images(_: ImageSource, files: Iterable[str], *, text: str, splits: str, seed: int) -> Listing:
    """The listing of the files that the configuration names; see :func:`list_flickr8k`."""
    if not text:
        raise UserError("data.flickr8k.text is not set", remedy="see config/README.md for what it should name")
    return list_flickr8k(files, Path(text), splits=splits, seed=seed)


def list_flickr8k(image_files: Iterable[str], text: Path, *, splits: str, seed: int) -> Listing:
    """The listing of the data set, in the order of the image file names.

    An image's id is its file name, as in the corpus; a caption's id is that name, ``#`` and its number.

    Args:
        image_files: the paths that exist below the image root, relative to it.
        text: the official folder or zip, a folder with Kaggle's ``captions.txt``, or either captions file itself, with
            the split lists beside it.
        splits: ``official``, or ``random`` for :func:`random_splits` of the images that have captions.
        seed: of the random split.
    """
    paths = pictures_by_name(image_files)
    with _Texts(text) as files:
        content = files.read_text(files.captions)
        captions, rejected = _parse_captions(content, files.captions, text)
        if splits == "official":
            split_of = _official_splits(files)
        else:
            captioned = {caption.image_id for caption in captions}
            split_of = random_splits([name for name in paths if name in captioned], seed, SIZES)
    names = sorted(paths.keys() | split_of.keys())
    images = [ListedImage(name, paths.get(name), split_of.get(name, "none")) for name in names]
    return Listing.from_records(images, captions, rejected)


class _Texts(Archive):
    """The caption file, and what lies beside it: in a folder or a zip, by file name.

    Attributes:
        captions: the name of the caption file.
    """

    def __init__(self, text: Path) -> None:
        if not text.exists():
            raise _wrong_text("no such file or folder", text)
        is_captions = text.is_file() and text.suffix.lower() != ".zip"
        super().__init__(text.parent if is_captions else text)
        self._text = text
        beside = [path.name for path in self.root.iterdir()] if self.root.is_dir() else self.files()
        self.names = {PurePosixPath(path).name: path for path in beside}
        known = [name for name in (OFFICIAL_CAPTIONS, KAGGLE_CAPTIONS) if name in self.names]
        if not known and not is_captions:
            raise _wrong_text(f"neither {OFFICIAL_CAPTIONS} nor {KAGGLE_CAPTIONS} is there", text)
        self.captions = text.name if is_captions else known[0]

    def read_text(self, name: str) -> str:
        try:
            return decode_text(self.read(self.names[name]))
        except (OSError, DamagedMember, UnicodeDecodeError) as error:
            raise UserError(f"{_KEY}: {name} cannot be read: {error}", where=self._text) from error


def _wrong_text(problem: str, text: Path) -> UserError:
    remedy = "name the folder Flickr8k_text, Flickr8k_text.zip or Kaggle's captions.txt"
    return UserError(f"{_KEY}: {problem}", where=text, remedy=remedy)


def _parse_captions(content: str, name: str, text: Path) -> tuple[list[ListedCaption], Rejected]:
    first_line = next(iter(content.splitlines()), "").strip().lower()
    if first_line == "image,caption":
        return _parse_kaggle(content, name)
    if "\t" in first_line:
        return parse_token_file(content, name)
    raise _wrong_text(f"{name} begins neither with 'image,caption' nor with 'image#number<tab>caption'", text)


def _parse_kaggle(content: str, name: str) -> tuple[list[ListedCaption], Rejected]:
    """Kaggle's copy has lost the caption numbers; they are counted again, in the order of the file."""
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    count: Counter[str] = Counter()
    for number, line in enumerate(content.splitlines()[1:], start=2):
        # Line by line: an open quotation mark would swallow the lines up to the next one.
        image_id, _, text = line.partition(",")
        if image_id.strip() and text:
            caption = ",".join(next(csv.reader([text])))
            captions.append(ListedCaption(f"{image_id}#{count[image_id]}", image_id, caption))
            count[image_id] += 1
        elif line:
            rejected.append((f"{name}:{number}", OddRow("not a line 'image,caption'")))
    return captions, rejected


def _official_splits(files: _Texts) -> dict[str, str]:
    if missing := [name for name in OFFICIAL_LISTS if name not in files.names]:
        raise UserError(
            f"data.flickr8k.splits: official needs {', '.join(missing)} beside the captions",
            where=files.root,
            remedy="put the official lists there, or set data.flickr8k.splits: random",
        )
    split_of: dict[str, str] = {}
    for name, split in OFFICIAL_LISTS.items():
        for image_id in files.read_text(name).split():
            put_in_split(split_of, image_id, split, files.root / name)
    return split_of


def pictures_by_name(image_files: Iterable[str]) -> dict[str, str]:
    """File name -> path of every picture; where a name occurs in several folders, the shallowest, then the first."""
    pictures = [path for path in image_files if path.lower().endswith(SUFFIXES)]
    pictures.sort(key=lambda path: (path.count("/"), path), reverse=True)
    return {PurePosixPath(path).name: path for path in pictures}


def parse_token_file(
    content: str, name: str, form: str = "image#number<tab>caption", language: str | None = None
) -> tuple[list[ListedCaption], Rejected]:
    """The captions of the lines, and (item, reason) of every line that has another form.

    Args:
        name: of the file, for the items.
        form: of a line, with a tab or a space before the caption.
    """
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    lines = content.split("\n") if "\n" in content else content.split("\r")
    for number, line in enumerate(lines, start=1):
        caption_id, separator, caption = line.partition("\t" if "<tab>" in form else " ")
        image_id, hash_sign, _ = caption_id.rpartition("#")
        if "\r" in line.rstrip("\r"):
            rejected.append((f"{name}:{number}", OddRow("a carriage return inside the line")))
        elif separator and hash_sign:
            captions.append(ListedCaption(caption_id, image_id.removesuffix("#zhc"), caption, language))
        elif line.strip():
            rejected.append((f"{name}:{number}", OddRow(f"not a line '{form}'")))
    return captions, rejected


def read_chinese(file: Path) -> tuple[list[ListedCaption], Rejected]:
    """The Chinese captions that people wrote for the photographs of Flickr8k (Flickr8k-CN), and (item, reason) of other
    lines.

    X. Li, W. Lan, J. Dong, H. Liu: Adding Chinese Captions to Images. ICMR 2016.
    """
    try:
        return parse_token_file(read_text(file), file.name, "image#zhc#number caption", "zh")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"data.pairs.chinese: cannot be read: {error}", where=file) from error
