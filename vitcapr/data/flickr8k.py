"""Flickr8k: 8,091 photographs with five captions each. Flickr30k reads its caption file and pictures as well.

M. Hodosh, P. Young, J. Hockenmaier: Framing Image Description as a Ranking Task. JAIR 47, 2013. The official
lists put 6,000 / 1,000 / 1,000 images into train / validation ("dev") / test; 91 are in none of them.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from vitcapr.data.archive import OddRow, Rejected
from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.data.images import SUFFIXES, ImageSource
from vitcapr.data.rows import Columns, read_rows
from vitcapr.data.splits import put_in_split, random_splits
from vitcapr.errors import UserError
from vitcapr.files import read_text

OFFICIAL_LISTS = {
    "Flickr_8k.trainImages.txt": "train",
    "Flickr_8k.devImages.txt": "validation",
    "Flickr_8k.testImages.txt": "test",
}
SIZES = (6000, 1000, 1000)
CAPTIONS = ("Flickr8k.token.txt", "captions.txt")
"""The official file of captions, and Kaggle's."""
_TABLE = Columns(
    {"image": ("image_name", "image"), "number": ("comment_number",), "caption": ("comment", "caption")},
    needed=("image", "caption"),
)
_KEY = "data.flickr8k.text"
_EXPECTED_TEXT = "the folder Flickr8k_text or Kaggle's captions.txt"
EXPECTED = "name the folder Flicker8k_Dataset or Flickr8k_Dataset.zip"


def list_images(_: ImageSource, files: Iterable[str], *, text: str, splits: str) -> Listing:
    """Return the listing of the data set, in the order of the image file names.

    An image's id is its file name, as in the corpus; a caption's id is that name, ``#`` and its number.

    Args:
        files: the paths that exist below the image root, relative to it.
        text: the official folder, a folder with Kaggle's ``captions.txt``, or either captions file itself, with the
            split lists in its folder.
        splits: ``official``, or ``random`` for :func:`random_splits` of the images that have captions.
    """
    if not text:
        raise UserError("data.flickr8k.text is not set", remedy="see config/README.md for what it should name")
    paths = pictures_by_name(files)
    file = _captions_file(Path(text))
    captions, rejected = read_captions(file, _KEY, _EXPECTED_TEXT)
    if splits == "official":
        split_of = _official_splits(file.parent)
    else:
        captioned = {caption.image_id for caption in captions}
        split_of = random_splits([name for name in paths if name in captioned], SIZES)
    names = sorted(paths.keys() | split_of.keys())
    images = [ListedImage(name, paths.get(name), split_of.get(name, "none")) for name in names]
    return Listing.from_records(images, captions, rejected)


def _captions_file(text: Path) -> Path:
    if not text.is_dir():
        return text
    file = next((text / name for name in CAPTIONS if (text / name).is_file()), None)
    if file is None:
        what = f"{_KEY}: neither {' nor '.join(CAPTIONS)} is there"
        raise UserError(what, where=text, remedy=f"name {_EXPECTED_TEXT}")
    return file


def _read(file: Path, key: str, expected: str) -> str:
    try:
        return read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        what = "no such file or folder" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise UserError(f"{key}: {what}", where=file, remedy=f"name {expected}") from error


def read_captions(file: Path, key: str, expected: str) -> tuple[list[ListedCaption], Rejected]:
    """Return the captions of an official token file or of Kaggle's table, and (item, reason) of other lines.

    Kaggle's copy of Flickr8k has lost the numbers of the captions; they are counted again, in the order of the file.

    Args:
        key: of the configuration, which names the file.
        expected: the names of the published files.
    """
    content = _read(file, key, expected)
    if "#" in content.partition("\n")[0].partition("\t")[0]:
        return parse_token_file(content, file.name)
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    count: Counter[str] = Counter()
    for row in read_rows(file, _TABLE, rejected, key=key):
        name = row.name("image")
        captions.append(ListedCaption(f"{name}#{row.text('number') or count[name]}", name, row.text("caption")))
        count[name] += 1
    return captions, rejected


def _official_splits(folder: Path) -> dict[str, str]:
    if missing := [name for name in OFFICIAL_LISTS if not (folder / name).is_file()]:
        raise UserError(
            f"data.flickr8k.splits: official needs {', '.join(missing)} beside the captions",
            where=folder,
            remedy="put the official lists there, or set data.flickr8k.splits: random",
        )
    split_of: dict[str, str] = {}
    for name, split in OFFICIAL_LISTS.items():
        for image_id in _read(folder / name, _KEY, "the folder Flickr8k_text").split():
            put_in_split(split_of, image_id, split, folder / name)
    return split_of


def pictures_by_name(image_files: Iterable[str]) -> dict[str, str]:
    """File name -> path of every picture; where a name occurs in several folders, the shallowest, then the first."""
    pictures = [path for path in image_files if path.lower().endswith(SUFFIXES)]
    pictures.sort(key=lambda path: (path.count("/"), path), reverse=True)
    return {PurePosixPath(path).name: path for path in pictures}


def parse_token_file(
    content: str, name: str, form: str = "image#number<tab>caption", language: str | None = None
) -> tuple[list[ListedCaption], Rejected]:
    """Return the captions of the lines, and (item, reason) of every line that has another form.

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
    """Return the human Chinese captions of Flickr8k (Flickr8k-CN), and (item, reason) of other lines.

    X. Li, W. Lan, J. Dong, H. Liu: Adding Chinese Captions to Images. ICMR 2016.
    """
    content = _read(file, "data.pairs.chinese", "flickr8kzhc.caption.txt")
    return parse_token_file(content, file.name, "image#zhc#number caption", "zh")
