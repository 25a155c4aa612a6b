"""Code that Flickr8k and Flickr30k share: pictures by file name, the token file, and seeded splits."""

import hashlib
from collections.abc import Iterable
from pathlib import PurePosixPath

from vitcapr.data.collect import ListedCaption
from vitcapr.data.images import SUFFIXES


def pictures_by_name(image_files: Iterable[str]) -> dict[str, str]:
    """File name -> path of every picture; where a name occurs in several folders, the shallowest, then the first."""
    pictures = [path for path in image_files if path.lower().endswith(SUFFIXES)]
    pictures.sort(key=lambda path: (path.count("/"), path), reverse=True)
    return {PurePosixPath(path).name: path for path in pictures}


def parse_token_file(content: str, name: str) -> tuple[list[ListedCaption], list[tuple[str, str]]]:
    """The captions of lines ``image#number<tab>caption``, and (item, reason) of every other line.

    Args:
        name: of the file, for the items.
    """
    captions, rejected = [], []
    lines = content.split("\n") if "\n" in content else content.split("\r")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if "\r" in line.rstrip("\r"):
            rejected.append((f"{name}:{number}", "a carriage return inside the line"))
            continue
        caption_id, tab, caption = line.partition("\t")
        image_id, hash_sign, _ = caption_id.rpartition("#")
        if tab and hash_sign:
            captions.append(ListedCaption(caption_id, image_id, caption))
        else:
            rejected.append((f"{name}:{number}", "not a line 'image#number<tab>caption'"))
    return captions, rejected


def random_splits(names: Iterable[str], seed: int, sizes: tuple[int, int, int]) -> dict[str, str]:
    """The split of each image; validation and test take at most an eighth of the images each.

    Images are ranked by a hash of seed and name, so that losing one image moves at most one other across each border.

    Args:
        sizes: greatest numbers of images for train, validation and test; what is left over is in no split.
    """
    ranked = sorted(names, key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest())
    validation, test = (min(size, len(ranked) // 8) for size in sizes[1:])
    train = min(sizes[0], len(ranked) - validation - test)
    order = ["train"] * train + ["validation"] * validation + ["test"] * test
    return dict(zip(ranked, order, strict=False))
