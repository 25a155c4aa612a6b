"""Pairs in two languages from data sets that have captions in both."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from vitcapr.artefacts.manifest import Manifest
from vitcapr.data.collect import Listing
from vitcapr.data.pairs.record import Pair
from vitcapr.errors import UserError


def flickr8k_pairs(listing: Listing, chinese: Path) -> tuple[list[Pair], list[tuple[str, str]]]:
    """Flickr8k with its English captions and the Chinese ones that people wrote for the same photographs (Flickr8k-CN).

    X. Li, W. Lan, J. Dong, H. Liu: Adding Chinese Captions to Images. ICMR 2016. The official test photographs are
    set apart.

    Args:
        chinese: lines ``image#zhc#number<space>caption``.

    Returns:
        The pairs, English before Chinese, each in the order of its file, and (item, reason) of what is none.

    Raises:
        UserError: the file cannot be read.
    """
    path_of = {image.image_id: image.path for image in listing.images}
    tested = {image.image_id for image in listing.images if image.split == "test"}
    rejected = list(listing.rejected)
    pairs = []
    for caption in listing.captions:
        if caption.image_id in path_of:
            image_id = caption.image_id
            pairs.append(_pair(caption.caption_id, image_id, path_of[image_id], "en", caption.text, image_id in tested))
        else:
            rejected.append((caption.caption_id, "caption without an image"))
    try:
        lines = chinese.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"data.pairs.chinese: cannot be read: {error}", where=chinese) from error
    for number, line in enumerate(lines, start=1):
        caption_id, _, text = line.partition(" ")
        image_id, hash_sign, _ = caption_id.partition("#")
        if not hash_sign:
            if line.strip():
                rejected.append((f"{chinese.name}:{number}", "not a line 'image#zhc#number caption'"))
        elif image_id not in path_of:
            rejected.append((caption_id, "caption without an image"))
        else:
            pairs.append(_pair(caption_id, image_id, path_of[image_id], "zh", text, image_id in tested))
    return pairs, rejected


def manifest_pairs(data: Manifest) -> list[Pair]:
    """The captions of a manifest in both languages; its test split is set apart."""
    path_of: dict[str, str] = dict(zip(data.images["image_id"], data.images["path"], strict=True))
    columns = data.captions[["caption_id", "image_id", "language", "text", "split"]]
    rows: Iterable[Sequence[str]] = columns.itertuples(index=False, name=None)
    return [
        _pair(caption_id, image_id, path_of[image_id], language, text, split == "test")
        for caption_id, image_id, language, text, split in rows
    ]


def _pair(caption_id: str, image_id: str, path: str | None, language: str, text: str, test: bool) -> Pair:
    return Pair(caption_id, image_id, path, language, text, None, test)
