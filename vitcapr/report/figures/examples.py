"""Choice of example images: at random with a seed, by name, or with long captions; and their images."""

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from vitcapr.data.images import BadImage, ImageSource
from vitcapr.errors import UserError
from vitcapr.formats.captions import AttentionTable, DecodedCaption, read_captions
from vitcapr.formats.manifest import SPLITS, Manifest


class Attended(NamedTuple):
    """The caption of an image row, and the attention (L, h, w) behind its L words."""

    row: int
    caption: DecodedCaption
    weights: NDArray[np.floating]


@contextmanager
def open_images(manifest: Manifest) -> Iterator[Callable[[int], Image.Image]]:
    """A function from the row of an image to the image, upright RGB."""
    with ImageSource(manifest.image_root) as source:

        def read(row: int) -> Image.Image:
            image = manifest.images.iloc[row]
            try:
                return source.open(str(image["path"]), max_pixels=int(image["width"]) * int(image["height"]))
            except BadImage as bad:
                what = f"cannot draw {image['path']}: {bad}"
                raise UserError(what, where=manifest.image_root, remedy="run the data stage again") from bad

        yield read


def first_references(manifest: Manifest, split: str, language: str) -> "pd.Series[str]":
    """The first caption of each image in a language, by image row."""
    return manifest.captions_of(split, language).drop_duplicates("image_row").set_index("image_row")["text"]


def rows_of_split(manifest: Manifest, split: str, captions: Mapping[str, Mapping[str, DecodedCaption]]) -> list[int]:
    """The image rows of ``split`` that every model has a caption for, increasing."""
    if split not in SPLITS:
        raise UserError(f"there is no split '{split}'", remedy=f"the splits are {', '.join(SPLITS)}")
    image_ids = manifest.images["image_id"].tolist()
    rows = [int(row) for row in manifest.rows(split) if all(image_ids[row] in each for each in captions.values())]
    if not rows:
        raise UserError(
            f"no image of the split {split} has a caption by {' and '.join(captions)}",
            remedy="check that the captions, the manifest and the split belong together",
        )
    return rows


def choose(rows: Sequence[int], count: int, seed: int) -> list[int]:
    """``count`` of ``rows`` at random, in increasing order; all of them if there are fewer."""
    order = np.random.default_rng(seed).permutation(len(rows))[:count]
    return sorted(rows[i] for i in order)


def choose_long(lengths: Mapping[int, int], count: int, seed: int) -> list[int]:
    """``count`` rows at random from the quarter with the longest captions, in increasing order.

    Args:
        lengths: words in the caption of each row. Of equal lengths the earlier row is taken for the longer.
    """
    longest = sorted(lengths, key=lambda row: (-lengths[row], row))
    return choose(longest[: max(count, len(longest) // 4)], count, seed)


def choose_attended(
    manifest: Manifest,
    split: str,
    captions: Path,
    table: AttentionTable,
    count: int,
    seed: int,
    images: Sequence[str] = (),
    words: Sequence[str] = (),
) -> list[Attended]:
    """The named images of the split, then images at random up to ``count``, or to the number of named images if that is
    larger.

    The random images are from the quarter with the longest captions. With ``words``, they are those whose captions
    hold the most of these words.

    Args:
        images: ids or file names; images of other splits are left out.
    """
    written = read_captions(captions)
    image_ids = manifest.images["image_id"].tolist()
    rows = rows_of_split(manifest, split, {str(captions): written})
    in_split = set(rows)
    named = [row for row in named_rows(manifest, images) if row in in_split]
    tokens = {row: written[image_ids[row]].tokens for row in rows if row not in named}
    left = max(count, len(images)) - len(named)
    if words:
        shuffled = np.random.default_rng(seed).permutation(list(tokens)).tolist()
        others = sorted(sorted(shuffled, key=lambda row: -len({*words} & {*tokens[row]}))[:left])
    else:
        others = choose_long({row: len(caption) for row, caption in tokens.items()}, left, seed)
    chosen = [(row, written[image_ids[row]]) for row in [*named, *others]]
    return [Attended(row, caption, table.of_caption(row, caption, captions)) for row, caption in chosen]


def named_rows(manifest: Manifest, images: Sequence[str]) -> list[int]:
    """The rows of images named by id or by file name, in the order of the names."""
    rows = {PurePosixPath(str(path)).name: row for row, path in enumerate(manifest.images["path"])}
    rows |= {str(image_id): row for row, image_id in enumerate(manifest.images["image_id"])}
    for image in images:
        if image not in rows:
            what = f"figures.attention_first: the data set {manifest.dataset} has no image '{image}'"
            raise UserError(what, remedy=_suggestion(image, rows) or "name an image by its id or by its file name")
    return [rows[image] for image in images]


def check_words(words: Sequence[str], vocabulary: Collection[str]) -> None:
    """Refuse words that are not in the vocabulary."""
    for word in words:
        if word not in vocabulary:
            what = f"figures.attention_words: the vocabulary has no word '{word}'"
            raise UserError(what, remedy=_suggestion(word, vocabulary) or "name a word of text/vocabulary.json")


def positions_of_words(tokens: Sequence[str], words: Sequence[str]) -> list[int]:
    """The positions of ``words`` in a caption; all positions if it holds none of them."""
    return [place for place, token in enumerate(tokens) if token in words] or list(range(len(tokens)))


def _suggestion(name: str, known: Collection[str]) -> str | None:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{close[0]}'?" if close else None
