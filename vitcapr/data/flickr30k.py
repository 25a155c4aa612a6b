"""Flickr30k: 31,783 photographs with five captions each, in the forms in which it is published.

P. Young, A. Lai, M. Hodosh, J. Hockenmaier: From Image Descriptions to Visual Denotations. TACL 2, 2014.
The split of the literature, 29,000 / 1,014 / 1,000, is that of A. Karpathy, L. Fei-Fei (CVPR 2015); it leaves 769 out.

The Parquet releases on the Hugging Face hub have a row for each image, its bytes and captions in it.
``lmms-lab/flickr30k`` puts all 31,783 rows into one split named test; other copies have a column ``split``, or files
named after their split. All of that is read from the small columns; no picture is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from vitcapr.data.collect import (
    KARPATHY_SPLITS,
    SPLIT_NAMES,
    ListedCaption,
    ListedImage,
    Listing,
    Rejected,
    parse_split,
    parse_text,
    put_in_split,
)
from vitcapr.data.flickr8k import parse_token_file, pictures_by_name, random_splits
from vitcapr.data.images import ImageSource
from vitcapr.data.tables import SUFFIX, open_table, picture_path
from vitcapr.errors import UserError
from vitcapr.files import read_json

Splits = Literal["karpathy", "paper", "random", "whole"]

EXPECTED = "name the folder of the Parquet files, or the folder flickr30k-images or a zip of it"
SIZES = (29000, 1014, 1000)
_CAPTION_COLUMNS = ("caption", "captions", "raw", "text")
_NAME_COLUMNS = ("filename", "file_name", "img_id", "image_id")


def list_images(
    source: ImageSource, files: Sequence[str], *, text: str | None, splits: Splits, lists: str | None, seed: int
) -> Listing:
    """The listing of the Parquet release, in its order; or of a caption file, in the order of the image file names.

    Args:
        files: the paths that exist below the image root, relative to it.
        text: ``dataset_flickr30k.json`` of Karpathy, or ``results_20130124.token``; None: the Parquet files hold the
            captions, and the pictures stay in them.
        lists: ``dataset_flickr30k.json``, where the splits are to come from it.
        splits, seed: see :func:`with_splits`.
    """
    where = Path(text) if text else source.root
    if text:
        captions, rejected, given = _parse_karpathy(where) if where.suffix.lower() == ".json" else _parse_tokens(where)
    elif tables := [name for name in files if name.endswith(SUFFIX)]:
        images, captions, rejected, given = read_release(source.root, tables)
    else:
        raise UserError(
            "data.flickr30k.images: no Parquet files found",
            where=where,
            remedy="name their folder or, for a folder of photographs, set data.flickr30k.text",
        )
    if lists:
        given = _parse_karpathy(Path(lists), "lists")[2]
    if text:
        paths = pictures_by_name(files)
        images = [ListedImage(name, paths.get(name), "none") for name in sorted(paths.keys() | given.keys())]
    return with_splits(Listing(images, captions, rejected), given, splits, seed, where)


def with_splits(listing: Listing, given: Mapping[str, str], splits: Splits, seed: int, where: Path) -> Listing:
    """``listing`` with every image in its split.

    Args:
        given: image id -> split, as far as a file says so.
        splits: ``karpathy``: as given. ``paper``: as given, the first caption of each image alone. ``random``: the same
            sizes, drawn from the images that have captions. ``whole``: all images with one caption each, in ``test``.
    """
    captions = listing.captions
    if splits in ("paper", "whole"):
        # An example of the paper is one image and one caption; an empty caption does not count.
        first = {caption.image_id: caption for caption in reversed(captions) if caption.text.strip()}
        captions = [caption for caption in captions if first.get(caption.image_id) is caption]
    split_of = given
    if splits == "whole":
        split_of = {image.image_id: "test" for image in listing.images}
    elif splits == "random":
        captioned = {caption.image_id for caption in captions}
        names = [image.image_id for image in listing.images if image.image_id in captioned]
        split_of = random_splits(names, seed, SIZES)
    elif not given:
        raise UserError(
            "data.flickr30k.splits: nothing here names the splits",
            where=where,
            remedy="set data.flickr30k.lists to dataset_flickr30k.json, or splits to random",
        )
    images = [replace(image, split=split_of.get(image.image_id, "none")) for image in listing.images]
    return Listing(images, captions, listing.rejected)


def _parse_tokens(file: Path) -> tuple[list[ListedCaption], Rejected, dict[str, str]]:
    if not file.is_file():
        raise _wrong_text("no such file", file)
    try:
        content = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong_text(f"cannot be read: {error}", file) from error
    if "\t" not in content.partition("\n")[0]:
        raise _wrong_text("its first line is not 'image#number<tab>caption'", file)
    return (*parse_token_file(content, file.name), {})


def _parse_karpathy(file: Path, key: str = "text") -> tuple[list[ListedCaption], Rejected, dict[str, str]]:
    if not file.is_file():
        raise _wrong_text("no such file", file, key)
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    split_of: dict[str, str] = {}
    try:
        for entry in read_json(file)["images"]:
            name = parse_text(entry["filename"])
            if name in split_of:
                rejected.append((name, "duplicate image id"))
                continue
            split_of[name] = KARPATHY_SPLITS[entry["split"]]
            texts = [parse_text(sentence["raw"]) for sentence in entry["sentences"]]
            captions += [ListedCaption(f"{name}#{number}", name, text) for number, text in enumerate(texts)]
    except (KeyError, TypeError, ValueError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(
            f"data.flickr30k.{key}: not the file dataset_flickr30k.json: {problem}",
            where=file,
            remedy="each image needs filename, split (train, val or test) and sentences with raw",
        ) from error
    return captions, rejected, split_of


def _wrong_text(problem: str, file: Path, key: str = "text") -> UserError:
    expected = "dataset_flickr30k.json or results_20130124.token" if key == "text" else "dataset_flickr30k.json"
    return UserError(f"data.flickr30k.{key}: {problem}", where=file, remedy=f"name {expected}")


class _Row(NamedTuple):
    name: str
    path: str
    texts: list[str]
    split: str | None


def read_release(
    root: Path, tables: Sequence[str]
) -> tuple[list[ListedImage], list[ListedCaption], Rejected, dict[str, str]]:
    """Every image and caption of ``tables``, Parquet files relative to ``root``, in the order given; what is left
    out; and image id -> split, empty where the files do not tell.

    An image's id is its file name; a caption's is that name, ``#`` and its number. Where a row holds one caption
    only, rows of the same image are put together.
    """
    images: dict[str, ListedImage] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    splits: dict[str, str] = {}
    numbers: dict[str, int] = {}
    # "data/test-00000-of-00009.parquet" tells its split.
    by_file = {name: SPLIT_NAMES.get(PurePosixPath(name).stem.split("-")[0].lower()) for name in tables}
    # Files that all claim one split, as all rows of lmms-lab's are test, tell nothing.
    files_tell = len(set(by_file.values())) > 1
    for table in tables:
        for row in _rows(root, table):
            if not row.name:
                rejected.append((row.path, "row without the name of its image"))
                continue
            if row.name in images and (len(row.texts) > 1 or numbers[row.name] == 0):
                rejected.append((row.path, f"duplicate of image {row.name}"))
                continue
            images.setdefault(row.name, ListedImage(row.name, row.path, "none"))
            split = row.split or (by_file[table] if files_tell else None)
            if split is not None:
                put_in_split(splits, row.name, split, root / table)
            first = numbers.setdefault(row.name, 0)
            captions += [
                ListedCaption(f"{row.name}#{number}", row.name, text) for number, text in enumerate(row.texts, first)
            ]
            numbers[row.name] += len(row.texts)
    known = {} if set(splits.values()) == {"test"} else splits
    return list(images.values()), captions, rejected, known


def _rows(root: Path, name: str) -> Iterator[_Row]:
    """The rows of one file, a row group at a time, without their pictures."""
    with open_table(root / name) as table:
        caption = _column(table.schema_arrow, _CAPTION_COLUMNS, root / name)
        identity = _column(table.schema_arrow, _NAME_COLUMNS, root / name)
        columns = [caption, identity, *(["split"] if "split" in table.schema_arrow.names else [])]
        number = 0
        for group in range(table.num_row_groups):
            try:
                rows = table.read_row_group(group, columns=columns).to_pylist()
            except (pa.ArrowException, OSError) as error:
                what = f"row group {group} of the Parquet file is damaged"
                raise UserError(what, where=root / name, remedy="fetch or copy it again") from error
            for row in rows:
                # A bare number, as in img_id, is a name as well.
                image = "" if row[identity] is None else str(row[identity])
                image = PurePosixPath(image).name if identity.startswith("file") else image
                split = None if row.get("split") in (None, "", "none") else parse_split(str(row["split"]), root / name)
                yield _Row(image, picture_path(name, number), _texts(row[caption]), split)
                number += 1


def _column(schema: "pa.Schema", names: Sequence[str], where: Path) -> str:
    for name in names:
        if name in schema.names:
            return name
    raise UserError(
        f"the Parquet file has no column {' or '.join(names[:2])}; it has {', '.join(schema.names)}",
        where=where,
        remedy="use lmms-lab/flickr30k or another release with image, caption and filename",
    )


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(text) for text in value or [] if text is not None]
