"""Pairs in two languages from a table, and from data sets that have captions in both."""

from dataclasses import replace
from pathlib import Path

from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.data.flickr8k import list_flickr8k, read_chinese
from vitcapr.data.images import ImageSource
from vitcapr.data.pairs.table import ColumnNames, list_table
from vitcapr.files import sha256_bytes
from vitcapr.formats.manifest import Manifest
from vitcapr.progress import Reporter

PICTURES = "pictures"
"""The folder of the pictures that are unpacked from a table."""


def pairs_of_table(
    table: Path, columns: ColumnNames, *, images: Path, encoded: bool, unpack_to: Path, reporter: Reporter
) -> tuple[Listing, Path]:
    """The rows of a table, and the root of its images.

    Args:
        images: the folder or zip of the pictures, where the table has their paths.
        encoded: the table has the pictures in Base64.
        unpack_to: receives the pictures that the table holds itself.
    """
    unpacked = 0

    def unpack(content: bytes) -> str:
        nonlocal unpacked
        digest = sha256_bytes(content)
        path = f"{PICTURES}/{digest[:2]}/{digest}"
        file = unpack_to / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # A half-written picture is found: the manifest, written last, names the digest.
        file.write_bytes(content)
        unpacked += 1
        return path

    existing: set[str] = set()
    if not encoded:
        with ImageSource(images) as source:
            existing = set(source.files())
    listing = list_table(table, columns, encoded=encoded, existing=existing, unpack=unpack)
    if unpacked:
        reporter.line(f"{unpacked} pictures unpacked from {table}")
    return listing, unpack_to if unpacked or encoded else images


def pairs_of_flickr8k(images: Path, text: Path, chinese: Path, *, splits: str, seed: int) -> Listing:
    """Flickr8k with its English captions and the Chinese ones that people wrote for the same photographs (Flickr8k-CN):
    English before Chinese, each in the order of its file. The official test photographs are set apart."""
    with ImageSource(images) as source:
        listing = list_flickr8k(source.files(), text, splits=splits, seed=seed)
    translated, rejected = read_chinese(chinese)
    captions = [*(replace(caption, language="en") for caption in listing.captions), *translated]
    # An image of the split lists alone has no pair.
    image_of = {image.image_id: image for image in listing.images}
    captioned = dict.fromkeys(caption.image_id for caption in captions if caption.image_id in image_of)
    listed = [image_of[image] for image in captioned]
    return Listing([_apart(image) for image in listed], captions, [*listing.rejected, *rejected])


def manifest_pairs(data: Manifest) -> Listing:
    """The captions of a manifest in both languages; its test split is set apart."""
    images = data.images[["image_id", "path", "split"]].itertuples(index=False, name=None)
    captions = data.captions[["caption_id", "image_id", "text", "language"]].itertuples(index=False, name=None)
    return Listing([_apart(ListedImage(*row)) for row in images], [ListedCaption(*row) for row in captions])


def _apart(image: ListedImage) -> ListedImage:
    """Of the splits, only the test split is kept."""
    return replace(image, split="test" if image.split == "test" else "none")
