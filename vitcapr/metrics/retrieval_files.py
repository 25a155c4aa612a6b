"""Inputs of the retrieval scores: rank tables, query banks, and embeddings checked against their split."""

from pathlib import Path

import numpy as np

from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings, QueryBankWeight, read_embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.scores import RankFile
from vitcapr.metrics.bootstrap import Measure
from vitcapr.metrics.query_bank import Correction
from vitcapr.metrics.ranks import Truth
from vitcapr.metrics.retrieval import measures


def measures_of(file: RankFile) -> dict[str, Measure]:
    return measures(file.ranks, Truth.of(file.caption_image, len(file.image_row)))


def measures_of_both(a: Path, b: Path) -> tuple[dict[str, Measure], dict[str, Measure]]:
    """The scores by image of two retrievers in the same pool.

    Raises:
        UserError: the files are of different pools.
    """
    first, second = RankFile.read(a), RankFile.read(b)
    for name in ("image_row", "caption_row"):
        if not np.array_equal(getattr(first, name), getattr(second, name)):
            raise UserError(f"the ranks are of other images or captions than those of {a}", where=b)
    return measures_of(first), measures_of(second)


def read_correction(query_bank: Path | None, weight: Path | None) -> Correction | None:
    """Raises:
    UserError: one of the files is not given, missing, or does not fit.
    """
    if query_bank is None and weight is None:
        return None
    if query_bank is None or weight is None:
        raise UserError(
            "a query bank needs a weight, and a weight a bank", remedy="give --query-bank and --bank-weight"
        )
    return Correction(read_embeddings(query_bank), QueryBankWeight.read(weight))


def check_pool(found: Embeddings, data: Manifest, split: str, where: Path) -> list[str]:
    """The pool is the split: all its captions in the languages that were embedded, and all images that have one.

    Returns:
        Those languages.

    Raises:
        UserError: an image or caption of the split is missing, or one of another split is there.
    """
    remedy = "embed the split again"
    table = data.captions_of(split)
    languages = sorted(table["language"][table["caption_row"].isin(found.caption_row)].unique())
    table = table[table["language"].isin(languages)]
    rows = np.unique(table["image_row"])
    if not np.array_equal(found.image_row, rows):
        what = f"{len(found.image_row)} images were embedded, not the {len(rows)} of the split '{split}' in their order"
        raise UserError(what, where=where, remedy=remedy)
    if not np.array_equal(found.caption_row, table["caption_row"]):
        what = f"{len(found.caption_row)} captions were embedded, not the {len(table)} of the split '{split}' in order"
        raise UserError(what, where=where, remedy=remedy)
    if not np.array_equal(found.image_row[found.caption_image], table["image_row"]):
        raise UserError("captions are given to images that are not theirs", where=where, remedy=remedy)
    return languages
