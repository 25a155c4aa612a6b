"""Flickr30k: 31,783 photographs with five captions each, in the forms in which it is published.

P. Young, A. Lai, M. Hodosh, J. Hockenmaier: From Image Descriptions to Visual Denotations. TACL 2, 2014.
The split of the literature, 29,000 / 1,014 / 1,000, is that of A. Karpathy, L. Fei-Fei (CVPR 2015); it leaves 769 out.

The Parquet releases on the Hugging Face hub have a row for each image, its bytes and captions in it.
``lmms-lab/flickr30k`` puts all 31,783 rows into one split named test; other copies have a column ``split``, or files
named after their split. All of that is read from the small columns; no picture is.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from vitcapr.data.archive import OddRow, Rejected
from vitcapr.data.coco import read_karpathy
from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.data.flickr8k import pictures_by_name, read_captions
from vitcapr.data.images import ImageSource
from vitcapr.data.parquet_pictures import SUFFIX, picture_path
from vitcapr.data.rows import Columns, captions_of, read_rows
from vitcapr.data.splits import parse_split, put_in_split, random_splits, splits_in
from vitcapr.errors import UserError

Splits = Literal["karpathy", "paper", "random", "whole"]

EXPECTED = "name the folder of the Parquet files, or the folder flickr30k-images or a zip of it"
_EXPECTED_TEXT = "dataset_flickr30k.json, results_20130124.token or results.csv"
SIZES = (29000, 1014, 1000)
_COLUMNS = Columns(
    {
        "caption": ("caption", "captions", "raw", "text"),
        "name": ("filename", "file_name", "img_id", "image_id"),
        "split": ("split",),
    },
    needed=("caption", "name"),
)


def list_images(
    source: ImageSource, files: Sequence[str], *, text: str | None, splits: Splits, lists: str | None
) -> Listing:
    """Return the listing of the Parquet release, or of a caption file.

    The release keeps its order; a caption file is ordered by image file names.

    Args:
        files: the paths that exist below the image root, relative to it.
        text: ``dataset_flickr30k.json`` of Karpathy, ``results_20130124.token`` or Kaggle's ``results.csv``; None: the
            Parquet files hold the captions, and the pictures stay in them.
        lists: ``dataset_flickr30k.json``, where the splits are to come from it.
        splits: see :func:`with_splits`.
    """
    where = Path(text) if text else source.root
    if text:
        if where.suffix.lower() == ".json":
            captions, rejected, given = _read_karpathy(where, "text")
        else:
            captions, rejected = read_captions(where, "data.flickr30k.text", _EXPECTED_TEXT)
            given = {}
    elif tables := [name for name in files if name.endswith(SUFFIX)]:
        by_name = splits in ("karpathy", "paper") and not lists
        images, captions, rejected, given = read_release(source.root, tables, by_name=by_name)
    else:
        raise UserError(
            "data.flickr30k.images: no Parquet files found",
            where=where,
            remedy="name their folder or, for a folder of photographs, set data.flickr30k.text",
        )
    if lists:
        given = _read_karpathy(Path(lists), "lists")[2]
    if text:
        paths = pictures_by_name(files)
        images = [ListedImage(name, paths.get(name), "none") for name in sorted(paths.keys() | given.keys())]
    return Listing.from_records(*with_splits(images, captions, given, splits, where), rejected)


def with_splits(
    images: Sequence[ListedImage],
    captions: Sequence[ListedCaption],
    given: Mapping[str, str],
    splits: Splits,
    where: Path,
) -> tuple[Sequence[ListedImage], Sequence[ListedCaption]]:
    """Return every image in its split, and the captions that count.

    Args:
        given: image id -> split, as far as a file says so.
        splits: ``karpathy``: as given. ``paper``: as given, the first caption of each image alone. ``random``: the same
            sizes, drawn from the images that have captions. ``whole``: all images with one caption each, in ``test``.
    """
    if splits in ("paper", "whole"):
        # An example of the paper is one image and one caption; an empty caption does not count.
        first = {caption.image_id: caption for caption in reversed(captions) if caption.text.strip()}
        captions = [caption for caption in captions if first.get(caption.image_id) is caption]
    split_of = given
    if splits == "whole":
        split_of = {image.image_id: "test" for image in images}
    elif splits == "random":
        captioned = {caption.image_id for caption in captions}
        names = [image.image_id for image in images if image.image_id in captioned]
        split_of = random_splits(names, SIZES)
    elif not given:
        raise UserError(
            "data.flickr30k.splits: nothing here names the splits",
            where=where,
            remedy="set data.flickr30k.lists to dataset_flickr30k.json, or splits to random",
        )
    return [image._replace(split=split_of.get(image.image_id, "none")) for image in images], captions


def _read_karpathy(file: Path, key: str) -> tuple[list[ListedCaption], Rejected, dict[str, str]]:
    images, captions, rejected = read_karpathy(file, f"data.flickr30k.{key}", "dataset_flickr30k.json")
    return captions, rejected, {name: image.split for name, image in images.items()}


def read_release(
    root: Path, tables: Sequence[str], *, by_name: bool
) -> tuple[list[ListedImage], list[ListedCaption], Rejected, dict[str, str]]:
    """Return images, captions, (item, reason) of what is left out, and the split of each image id.

    The Parquet ``tables`` are relative to ``root`` and are read in the order given. The splits are empty where the
    files name none.

    An image's id is its file name; a caption's is that name, ``#`` and its number. Where a row holds one caption
    only, rows of the same image are put together.
    """
    images: dict[str, ListedImage] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    splits: dict[str, str] = {}
    numbers: dict[str, int] = {}
    # "data/test-00000-of-00009.parquet" tells its split; all rows of lmms-lab's are in test, which tells nothing.
    by_file = splits_in(tables, "data.flickr30k.lists")[0] if by_name else {}
    for table in tables:
        for row in read_rows(root / table, _COLUMNS, rejected, key="data.flickr30k.images", name=table):
            path, name = picture_path(table, row.number - 1), PurePosixPath(row.name("name")).name
            if not (texts := captions_of(row.cells["caption"], path, rejected)):
                continue
            if not name:
                rejected.append((path, OddRow("row without the name of its image")))
                continue
            if name in images and (len(texts) > 1 or numbers[name] == 0):
                rejected.append((path, f"duplicate of image {name}"))
                continue
            images.setdefault(name, ListedImage(name, path, "none"))
            split = row.text("split")
            given = by_file.get(table) if split in ("", "none") else parse_split(split, root / table)
            if given is not None:
                put_in_split(splits, name, given, root / table)
            first = numbers.setdefault(name, 0)
            captions += [ListedCaption(f"{name}#{number}", name, text) for number, text in enumerate(texts, first)]
            numbers[name] += len(texts)
    known = {} if set(splits.values()) == {"test"} else splits
    return list(images.values()), captions, rejected, known
