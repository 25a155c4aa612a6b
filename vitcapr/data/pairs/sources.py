"""Pairs in two languages from data sets that have captions in both."""

from pathlib import Path

import numpy as np
import pandas as pd

from vitcapr.data.collect import Listing, caption_columns, take_rows
from vitcapr.data.flickr8k import list_flickr8k, read_chinese
from vitcapr.data.images import ImageSource
from vitcapr.formats.manifest import Manifest


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
