"""Training captions that an audit holds for wrong are left out of a data set."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from vitcapr.data.collect import Listing, take_rows
from vitcapr.errors import UserError
from vitcapr.formats.caption_audit import read_audit
from vitcapr.formats.containers import find_texts


def leave_out(listing: Listing, audit: Path, least: float) -> Listing:
    """The listing without the training captions whose probability of being wrong is at least ``least``.

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
