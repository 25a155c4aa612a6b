"""The readers of photographs with captions, by the names of data sets, and the captions that an audit leaves out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.data import coco, flickr8k, flickr30k, table
from vitcapr.data.collect import Listing, tried_paths
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.formats.caption_audit import read_audit
from vitcapr.formats.containers import find_texts, take_rows

READERS: dict[str, Any] = {"coco": coco, "flickr30k": flickr30k, "flickr8k": flickr8k, "table": table}
"""A module has ``list_images`` and, for people whose photographs are not found, ``EXPECTED``."""


@contextmanager
def list_data_set(name: str, images: str, **keys: Any) -> Iterator[tuple[ImageSource, Listing]]:
    """Yield the images and captions that the files of a data set list, before any image is read.

    Args:
        images: a folder or a zip, or one tar or Parquet file, which is read as a folder that holds nothing else.
        keys: the other arguments of the reader.
    """
    reader, key, path = READERS[name], f"data.{name}.images", Path(images)
    if not images:
        raise UserError(f"{key} is not set", remedy=reader.EXPECTED)
    if not path.exists():
        raise UserError(f"{key}: no such folder or file", where=path, remedy=reader.EXPECTED)
    alone = path.suffix.lower() in (".tar", ".parquet")
    with ImageSource(path.parent if alone else path) as source:
        files = [path.name] if alone else source.files()
        listing = reader.list_images(source, files, **keys)
        rows = np.unique(listing.captions["image_row"])
        captioned = listing.images.iloc[rows[rows >= 0]]
        if captioned["path"].isna().all():
            raise UserError(f"{key}: {_missing(captioned, listing, files)}", where=path, remedy=reader.EXPECTED)
        yield source, listing


def _missing(captioned: pd.DataFrame, listing: Listing, files: list[str]) -> str:
    if len(captioned):
        tried = tried_paths(captioned, np.arange(1)).iloc[0]
        same = (file for file in files if PurePosixPath(file).name == PurePosixPath(tried).name)
        example = next(same, files[0] if files else None)
        there = f"there is '{example}'" if example else "there is no file"
        if ending := next((end for file in files if (end := _ending(file, tried))), ""):
            there = f"there is '{tried}{ending}': add the ending to the names in the table"
        return f"none of the {len(captioned)} listed photographs was found; the first is '{tried}', and {there}"
    if not listing.rejected:
        return "no photograph with a caption is listed"
    item, reason = listing.rejected[0]
    number = len(listing.rejected)
    return f"no photograph with a caption is listed; {number} items are left out, the first is '{item}': {reason}"


def _ending(file: str, name: str) -> str:
    """Return the ending that a name lacks to be that of the file; empty if it is another name."""
    path = PurePosixPath(file)
    return path.suffix if str(path.with_suffix("")) == name else ""


def leave_out(listing: Listing, audit: Path, least: float) -> Listing:
    """Return the listing without the training captions whose probability of being wrong is at least ``least``.

    They are among ``rejected``, with the probability as the reason. Captions of the other splits stay, so that scores
    can be compared.

    Raises:
        UserError: no training caption is left out.
    """
    table, captions = read_audit(audit), listing.captions
    wrong = np.append(table["wrong"].to_numpy(), np.nan)[find_texts(captions["caption_id"], table["caption_id"])]
    row = captions["image_row"].to_numpy()
    trained = (row >= 0) & (listing.images["split"].to_numpy() == "train")[row]
    if not (trained & (wrong >= least)).any():
        known = trained & ~np.isnan(wrong)
        highest = f"their highest probability is {wrong[known].max():.3g}" if known.any() else "it has none of them"
        what = f"data.leave_out leaves out none of {trained.sum():,} training captions: {highest}"
        raise UserError(what, where=audit, remedy="lower data.leave_out_above, or remove data.leave_out")
    out = np.flatnonzero(trained & (wrong >= least))
    reasons = [f"left out: wrong with a probability of {each:.2f}" for each in wrong[out]]
    rejected = [*listing.rejected, *zip(captions["caption_id"].iloc[out], reasons, strict=True)]
    kept = take_rows(captions, np.setdiff1d(np.arange(len(captions)), out))
    return replace(listing, captions=kept, rejected=rejected)
