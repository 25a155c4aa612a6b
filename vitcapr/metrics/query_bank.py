"""Query-bank correction of retrieval scores for hubs, with the training split as the bank.

In spaces of many dimensions some images are near to all captions, and some captions to all images. The nearness of an
item to the training split of the other modality is measured, and a share of it is subtracted from every score of the
item:

    score(i, c) = <i, c> - w h(i) - w h(c),    h(x) = 1/b log mean over q in the bank of exp(b <x, q>)

With w = 1 the order is that of the inverted softmax (Smith et al. 2017), which Bogolin et al. (Cross Modal Retrieval
with Querybank Normalisation, CVPR 2022) compute with a bank of training queries. No query of the split that is scored
is looked at, so that a query's ranks do not depend on the other queries.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings, QueryBankWeight, read_embeddings
from vitcapr.metrics.ranks import CaptionOwners, Float32s, rank_matches
from vitcapr.metrics.retrieval_measures import measures

Sums = npt.NDArray[np.float64]
_SCORES = 2**22
"""Scores in memory at a time."""
_SHOWN = ("rsum", "i2t_recall_1", "t2i_recall_1")


def hubness(embedded: Embeddings, bank: Embeddings, inverse_temperature: float) -> tuple[Sums, Sums]:
    """Return the similarity of each image to the captions of the bank, (N,), and of each caption, (M,).

    Raises:
        UserError: the bank is of another space.
    """
    if bank.images.shape[1] != embedded.images.shape[1]:
        lengths = f"vectors of {bank.images.shape[1]} numbers, and those to be scored have {embedded.images.shape[1]}"
        raise UserError(f"the bank has {lengths}", where="the query bank", remedy="embed both with one model")
    images = _nearness(embedded.images, bank.captions, inverse_temperature)
    return images, _nearness(embedded.captions, bank.images, inverse_temperature)


def without_hubness(embedded: Embeddings, hubs: tuple[Sums, Sums], weight: float) -> Embeddings:
    """Embeddings whose dot products are the corrected scores: two numbers longer, and no longer of unit length."""
    ones = [np.ones((len(side), 1), np.float32) for side in hubs]
    images, captions = ((-weight * side).astype(np.float32)[:, None] for side in hubs)
    return embedded._replace(
        images=np.concatenate([embedded.images, images, ones[0]], axis=1),
        captions=np.concatenate([embedded.captions, ones[1], captions], axis=1),
    )


def corrected(embedded: Embeddings, bank: Embeddings, weight: QueryBankWeight) -> Embeddings:
    """Embeddings of a split whose dot products are its scores by a correction that is known.

    Raises:
        UserError: as for :func:`hubness`, or the weight was chosen with another bank.
    """
    if (weight.images, weight.captions) != (len(bank.images), len(bank.captions)):
        what = f"the weight was chosen with a bank of {weight.images} images and {weight.captions} captions"
        raise UserError(what, where="the query bank", remedy="run weigh_query_bank again")
    return without_hubness(embedded, hubness(embedded, bank, weight.inverse_temperature), weight.weight)


class Correction(NamedTuple):
    """A query bank, and the weight that was chosen with it."""

    bank: Embeddings
    weight: QueryBankWeight


def read_correction(query_bank: Path | None, weight: Path | None) -> Correction | None:
    """Read the correction by a query bank; None without files.

    Raises:
        UserError: one of the files is not given, missing, or does not fit.
    """
    if query_bank is None and weight is None:
        return None
    if query_bank is None or weight is None:
        raise UserError("a query bank needs a weight, and a weight a bank", remedy="give query_bank and bank_weight")
    return Correction(read_embeddings(query_bank), QueryBankWeight.read(weight))


def weigh(
    embedded: Embeddings, bank: Embeddings, inverse_temperatures: Sequence[float], weights: Sequence[float]
) -> QueryBankWeight:
    """Try all of both on the validation split ``embedded``; the best by the sum of recalls, of equal ones the first.

    Args:
        weights: 0 leaves the cosines as they are, whatever the temperature.
    """
    owners = CaptionOwners.of(embedded.caption_image, len(embedded.images))
    curve = []
    for inverse_temperature in inverse_temperatures:
        hubs = hubness(embedded, bank, inverse_temperature)
        for weight in weights:
            tried = without_hubness(embedded, hubs, weight)
            scores = measures(rank_matches(tried.images, tried.captions, owners.caption_image), owners)
            row = {"inverse_temperature": float(inverse_temperature), "weight": float(weight)}
            curve.append(row | {name: round(scores[name].value, 6) for name in _SHOWN})
    best = max(curve, key=lambda row: row["rsum"])
    return QueryBankWeight(
        inverse_temperature=best["inverse_temperature"],
        weight=best["weight"],
        images=len(bank.images),
        captions=len(bank.captions),
        chosen_by="rsum on validation",
        curve=curve,
    )


def _nearness(items: Float32s, bank: Float32s, inverse_temperature: float) -> Sums:
    """(len(items),): the log of the mean of the exponentials, block by block of the items."""
    block = max(1, _SCORES // len(bank))
    parts = (items[start : start + block] @ bank.T for start in range(0, len(items), block))
    sums = [logsumexp(inverse_temperature * part.astype(np.float64), axis=1) for part in parts]
    near: Sums = (np.concatenate(sums) - np.log(len(bank))) / inverse_temperature
    return near
