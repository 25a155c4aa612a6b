"""Captions and the attention behind their words, of images with long captions."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vitcapr.artefacts.attention import AttentionTable
from vitcapr.artefacts.captions import DecodedCaption, read_captions
from vitcapr.artefacts.manifest import Manifest
from vitcapr.errors import UserError
from vitcapr.figures.examples import choose_long, rows_of_split


class Attended(NamedTuple):
    """The caption of an image row, and the attention (L, h, w) behind its L words."""

    row: int
    caption: DecodedCaption
    weights: NDArray[np.floating]


def choose_attended(
    manifest: Manifest, split: str, captions: Path, table: AttentionTable, count: int, seed: int
) -> list[Attended]:
    """``count`` images of the split at random from the quarter with the longest captions.

    Raises:
        UserError: the captions and the attention are not of the same decoding.
    """
    written = read_captions(captions)
    image_ids = manifest.images["image_id"].tolist()
    rows = rows_of_split(manifest, split, {str(captions): written})
    lengths = {row: len(written[image_ids[row]].tokens) for row in rows}
    return [_attended(row, written[image_ids[row]], table, captions) for row in choose_long(lengths, count, seed)]


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
