"""Random selection of example images with a seed."""

from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image

from vitcapr.data.images import BadImage, ImageSource
from vitcapr.errors import UserError
from vitcapr.formats.captions import DecodedCaption
from vitcapr.formats.manifest import SPLITS, Manifest


def rows_of_split(manifest: Manifest, split: str, captions: Mapping[str, Mapping[str, DecodedCaption]]) -> list[int]:
    """The image rows of ``split`` that every model has a caption for, increasing.

    Args:
        captions: by the model's name, then by image id.

    Raises:
        UserError: there is no such split or no such image.
    """
    if split not in SPLITS:
        raise UserError(f"there is no split '{split}'", remedy=f"the splits are {', '.join(SPLITS)}")
    image_ids = manifest.images["image_id"].tolist()
    rows = [int(row) for row in manifest.rows(split) if all(image_ids[row] in found for found in captions.values())]
    if not rows:
        raise UserError(
            f"no image of the split {split} has a caption by {' and '.join(captions)}",
            remedy="check that the captions, the manifest and the split belong together",
        )
    return rows


def choose(rows: Sequence[int], count: int, seed: int) -> list[int]:
    """``count`` of ``rows`` at random, in increasing order; all of them if there are fewer."""
    drawn = np.random.default_rng(seed).permutation(len(rows))[:count]
    return sorted(rows[i] for i in drawn)


def choose_long(lengths: Mapping[int, int], count: int, seed: int) -> list[int]:
    """``count`` rows at random from the quarter with the longest captions, in increasing order.

    Args:
        lengths: words in the caption of each row. Of equal lengths the earlier row is taken for the longer.
    """
    longest = sorted(lengths, key=lambda row: (-lengths[row], row))
    return choose(longest[: max(count, len(longest) // 4)], count, seed)


def read_picture(manifest: Manifest, source: ImageSource, row: int) -> Image.Image:
    """The picture of an image row, upright RGB.

    Raises:
        UserError: it has gone or changed since the manifest was made.
    """
    image = manifest.images.iloc[row]
    try:
        return source.open(str(image["path"]), max_pixels=int(image["width"]) * int(image["height"]))
    except BadImage as bad:
        raise UserError(
            f"cannot draw {image['path']}: {bad}", where=manifest.image_root, remedy="run the data stage again"
        ) from bad
