"""The images that were withdrawn from a data set: a CSV file of their ids and the digests of their files."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, find_under, open_text
from vitcapr.formats.containers import take_rows

if TYPE_CHECKING:
    from vitcapr.data.collect import Listing

_COLUMNS = ["image_id", "sha256"]


def read_withdrawn(name: str | None) -> dict[str, str]:
    """Return the digest of each withdrawn image by its id; empty without a list.

    Args:
        name: ``data.withdrawn``.

    Raises:
        UserError: the file has other columns.
    """
    if name is None:
        return {}
    with open_text(find_under("VITCAPR_DATA", name)) as stream:
        header, *rows = list(csv.reader(stream)) or [[]]
    if header != _COLUMNS or any(len(row) != len(_COLUMNS) for row in rows):
        remedy = f"its columns are {','.join(_COLUMNS)}; vitcapr withdraw writes it"
        raise UserError("not a list of withdrawn images", where=find_under("VITCAPR_DATA", name), remedy=remedy)
    return dict(rows)


def add_withdrawn(name: str, images: Mapping[str, str]) -> Path:
    """Add images to the list, which is made if it does not exist; return its path."""
    path = find_under("VITCAPR_DATA", name)
    listed = {**(read_withdrawn(name) if path.exists() else {}), **images}
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([_COLUMNS, *sorted(listed.items())])
    return path


def without_images(listing: "Listing", ids: Mapping[str, str]) -> "Listing":
    """Return a listing that does not name these images and their captions, not even among the rejected."""
    gone = listing.images["image_id"].isin(list(ids)).to_numpy()
    row = listing.captions["image_row"].to_numpy()
    lost = (row >= 0) & gone[row]
    items = {*ids, *listing.captions["caption_id"][lost]}
    captions = take_rows(listing.captions, np.flatnonzero(~lost))
    kept = row[~lost]
    return replace(
        listing,
        images=take_rows(listing.images, np.flatnonzero(~gone)),
        captions=captions.assign(image_row=np.where(kept < 0, kept, (np.cumsum(~gone) - 1)[kept])),
        rejected=[one for one in listing.rejected if one[0] not in items],
    )
