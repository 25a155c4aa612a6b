"""Pairs in two languages from a table, and from data sets that have captions in both."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vitcapr.data.collect import Rejected
from vitcapr.data.flickr8k import list_flickr8k
from vitcapr.data.images import ImageSource
from vitcapr.data.pairs.table import ColumnNames, Pair, list_table
from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes
from vitcapr.formats.manifest import Manifest
from vitcapr.progress import Reporter

PICTURES = "pictures"
"""The folder of the pictures that are unpacked from a table."""


@dataclass(frozen=True)
class ListedPairs:
    """What a source of pairs holds.

    Attributes:
        rejected: (item, reason) of what is no pair.
        image_root: what the paths of the pictures are relative to.
    """

    pairs: Sequence[Pair]
    rejected: Rejected
    image_root: Path


def pairs_of_table(
    table: Path, columns: ColumnNames, *, images: Path, encoded: bool, unpack_to: Path, reporter: Reporter
) -> ListedPairs:
    """The rows of a table.

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
    pairs, rejected = list_table(table, columns, encoded=encoded, existing=existing, unpack=unpack)
    if unpacked:
        reporter.line(f"{unpacked} pictures unpacked from {table}")
    return ListedPairs(pairs, rejected, unpack_to if unpacked or encoded else images)


def pairs_of_flickr8k(images: Path, text: Path, chinese: Path, *, splits: str, seed: int) -> ListedPairs:
    """Flickr8k with its English captions and the Chinese ones that people wrote for the same photographs (Flickr8k-CN):
    English before Chinese, each in the order of its file. The official test photographs are set apart.

    X. Li, W. Lan, J. Dong, H. Liu: Adding Chinese Captions to Images. ICMR 2016.

    Args:
        chinese: lines ``image#zhc#number<space>caption``.
    """
    with ImageSource(images) as source:
        listing = list_flickr8k(source.files(), text, splits=splits, seed=seed)
    image_of = {image.image_id: image for image in listing.images}
    rejected = list(listing.rejected)
    written = [(caption.caption_id, caption.image_id, "en", caption.text) for caption in listing.captions]
    try:
        lines = chinese.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"data.pairs.chinese: cannot be read: {error}", where=chinese) from error
    for number, line in enumerate(lines, start=1):
        caption_id, _, caption = line.partition(" ")
        image_id, hash_sign, _ = caption_id.partition("#")
        if hash_sign:
            written.append((caption_id, image_id, "zh", caption))
        elif line.strip():
            rejected.append((f"{chinese.name}:{number}", "not a line 'image#zhc#number caption'"))
    pairs = []
    for caption_id, image_id, language, caption in written:
        if image_id in image_of:
            image = image_of[image_id]
            pairs.append(Pair(caption_id, image_id, image.path, language, caption, None, image.split == "test"))
        else:
            rejected.append((caption_id, "caption without an image"))
    return ListedPairs(pairs, rejected, images)


def manifest_pairs(data: Manifest) -> list[Pair]:
    """The captions of a manifest in both languages; its test split is set apart."""
    path_of: dict[str, str] = dict(zip(data.images["image_id"], data.images["path"], strict=True))
    columns = data.captions[["caption_id", "image_id", "language", "text", "split"]]
    return [
        Pair(caption_id, image_id, path_of[image_id], language, text, None, split == "test")
        for caption_id, image_id, language, text, split in columns.itertuples(index=False, name=None)
    ]
