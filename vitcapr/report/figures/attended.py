"""Captions and the attention behind their words, of chosen images or of images with long captions."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.formats.captions import AttentionTable, DecodedCaption, read_captions
from vitcapr.formats.manifest import Manifest
from vitcapr.report.figures.examples import choose_long, rows_of_split


class Attended(NamedTuple):
    """The caption of an image row, and the attention (L, h, w) behind its L words."""

    row: int
    caption: DecodedCaption
    weights: NDArray[np.floating]


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

    Raises:
        UserError: an image is not in the data set, or the captions and the attention are not of the same decoding.
    """
    written = read_captions(captions)
    image_ids = manifest.images["image_id"].tolist()
    rows = rows_of_split(manifest, split, {str(captions): written})
    in_split = set(rows)
    named = [row for row in named_rows(manifest, images) if row in in_split]
    tokens = {row: written[image_ids[row]].tokens for row in rows if row not in named}
    left = max(count, len(images)) - len(named)
    if words:
        drawn = _choose_holding({row: len({*words} & {*held}) for row, held in tokens.items()}, left, seed)
    else:
        drawn = choose_long({row: len(said) for row, said in tokens.items()}, left, seed)
    return [_attended(row, written[image_ids[row]], table, captions) for row in [*named, *drawn]]


def named_rows(manifest: Manifest, images: Sequence[str]) -> list[int]:
    """The rows of images named by id or by file name, in the order of the names.

    Raises:
        UserError: an image is not in the data set.
    """
    rows = {PurePosixPath(str(path)).name: row for row, path in enumerate(manifest.images["path"])}
    rows |= {str(image_id): row for row, image_id in enumerate(manifest.images["image_id"])}
    for image in images:
        if image not in rows:
            what = f"figures.attended_images: the data set {manifest.dataset} has no image '{image}'"
            raise UserError(what, remedy=_meant(image, rows) or "name an image by its id or by its file name")
    return [rows[image] for image in images]


def check_words(words: Sequence[str], vocabulary: Collection[str]) -> None:
    """Raises:
    UserError: a word is not in the vocabulary.
    """
    for word in words:
        if word not in vocabulary:
            what = f"figures.attended_words: the vocabulary has no word '{word}'"
            raise UserError(what, remedy=_meant(word, vocabulary) or "name a word of text/vocabulary.json")


def shown_words(tokens: Sequence[str], words: Sequence[str]) -> list[int]:
    """The positions of ``words`` in a caption; all positions if it holds none of them."""
    return [place for place, token in enumerate(tokens) if token in words] or list(range(len(tokens)))


def _choose_holding(held: Mapping[int, int], count: int, seed: int) -> list[int]:
    """``count`` rows whose captions hold the most of the words, at random among equals, in increasing order."""
    shuffled = np.random.default_rng(seed).permutation(list(held)).tolist()
    return sorted(sorted(shuffled, key=lambda row: -held[row])[:count])


def _meant(name: str, known: Collection[str]) -> str | None:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{close[0]}'?" if close else None


def _attended(row: int, caption: DecodedCaption, table: AttentionTable, where: Path) -> Attended:
    weights = table.of_row(row)
    if weights is None or len(weights) != len(caption.tokens):
        found = "no attention" if weights is None else f"attention for {len(weights)} words"
        raise UserError(
            f"{found} for the {len(caption.tokens)} words of image {caption.image_id}",
            where=where,
            remedy="give the captions and the attention of one decoding",
        )
    return Attended(row, caption, weights)
