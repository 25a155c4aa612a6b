"""Pairs in two languages: from a table with paths of pictures or the pictures themselves, or from data sets that have
captions in both languages."""

import base64
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.data.collect import ListedCaption, ListedImage, Listing, caption_columns, take_rows
from vitcapr.data.flickr8k import list_flickr8k, read_chinese
from vitcapr.data.images import ImageSource
from vitcapr.data.rows import Columns, Row, captions_of, read_rows
from vitcapr.data.table import USUAL
from vitcapr.data.tars import OddRow, Rejected
from vitcapr.files import sha256_bytes
from vitcapr.formats.manifest import Manifest

LANGUAGES = ("en", "zh")
NAMES = {"text": ("text", "caption"), **{name: USUAL[name] for name in ("image", "language", "split")}}
"""The names that a column may have; that of ``category`` is fixed."""
PICTURES = "pictures"
"""The folder of the pictures that are unpacked from a table."""
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def detect_language(text: str) -> str:
    """``zh`` where there is a Han character, else ``en``: the two languages differ in script."""
    return "zh" if _HAN.search(text) else "en"


def list_table(file: Path, *, images: Path, encoded: bool, unpack_to: Path) -> tuple[Listing, Path]:
    """The pairs of a table, in its order, and the root of its images. The split of an image is ``test`` if one of its
    rows says so, else ``none``.

    A caption's id is ``row-`` and its number. A picture's id is its path; of a picture inside the table, the digest of
    its bytes, so that the same picture in two rows is one.

    Args:
        images: the folder or zip of the pictures, where the table has their paths.
        encoded: the image column holds Base64 and not paths. Bytes, which Parquet can hold, are taken as they are.
        unpack_to: receives the pictures that the table holds itself.
    """
    existing: set[str] = set()
    if not encoded:
        with ImageSource(images) as source:
            existing = set(source.files())
    listed: dict[str, ListedImage] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    table_columns = Columns({**NAMES, "category": ("category",)}, needed=("text", "image"))
    for row in read_rows(file, table_columns, rejected, key="data.pairs.table"):
        try:
            text, *more = captions_of(row.cells.get("text"))
            if more:
                raise TypeError("a list of captions: a pair has one")
            language = row.text("language") or detect_language(text)
            if language not in LANGUAGES:
                raise ValueError(f"language '{language}' is neither en nor zh")
            image_id, path = _place(row, encoded, existing, unpack_to)
        except (ValueError, TypeError) as error:
            rejected.append((row.place, OddRow(error)))
            continue
        if image_id not in listed or row.text("split") == "test":
            listed[image_id] = ListedImage(image_id, path, "test" if row.text("split") == "test" else "none")
        category = row.text("category") or None
        captions.append(ListedCaption(f"row-{row.number}", image_id, text, language, category))
    unpacked = encoded or any(image.path not in (None, image.image_id) for image in listed.values())
    return Listing.from_records(listed.values(), captions, rejected), unpack_to if unpacked else images


def _place(row: Row, encoded: bool, existing: set[str], unpack_to: Path) -> tuple[str, str | None]:
    """Id and path of the picture of a row, which is unpacked if the row holds it."""
    image: Any = row.cells.get("image")
    content = image.get("bytes") if isinstance(image, dict) else image
    if isinstance(content, str) and encoded and content:
        content = _decode(content)
    if isinstance(content, bytes) and content:
        digest = sha256_bytes(content)
        file = unpack_to / PICTURES / digest[:2] / digest
        file.parent.mkdir(parents=True, exist_ok=True)
        # A half-written picture is noticed: the manifest, written last, names the digest.
        file.write_bytes(content)
        return digest, file.relative_to(unpack_to).as_posix()
    if encoded or not (name := row.name("image")):
        raise ValueError("no picture")
    image_id = name.replace("\\", "/").removeprefix("./")
    return image_id, image_id if image_id in existing else None


def _decode(text: str) -> bytes:
    """The bytes of a Base64 string, also of a ``data:`` URL and of one broken into lines."""
    body = text.partition("base64,")[2] if text.startswith("data:") else text
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except ValueError as error:
        raise ValueError("not Base64") from error


def pairs_of_flickr8k(images: Path, text: Path, chinese: Path, *, splits: str, seed: int) -> Listing:
    """Flickr8k with its English captions and the Chinese ones that people wrote for the same photographs (Flickr8k-CN):
    English before Chinese, each in the order of its file. The official test photographs are set apart."""
    with ImageSource(images) as source:
        listing = list_flickr8k(source.files(), text, splits=splits, seed=seed)
    translated, rejected = read_chinese(chinese)
    columns = [listing.captions.assign(language="en"), caption_columns(translated, listing.images)]
    captions = pd.concat(columns, ignore_index=True)
    # An image of the split lists alone has no pair.
    captioned = captions["image_row"][captions["image_row"] >= 0].unique()
    row = np.full(len(listing.images) + 1, -1)
    row[captioned] = np.arange(len(captioned))
    captions = captions.assign(image_row=row[captions["image_row"]])
    return Listing(_apart(take_rows(listing.images, captioned)), captions, [*listing.rejected, *rejected])


def manifest_pairs(data: Manifest) -> Listing:
    """The captions of a manifest in both languages; its test split is set apart."""
    captions = data.captions[["caption_id", "image_row", "text", "language"]].assign(category=None)
    return Listing(_apart(data.images[["image_id", "path", "split"]]), captions)


def _apart(images: pd.DataFrame) -> pd.DataFrame:
    """Of the splits, only the test split is kept."""
    return images.assign(split=images["split"].where(images["split"] == "test", "none"))
