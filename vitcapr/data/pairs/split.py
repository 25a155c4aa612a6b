"""Splits pairs into training, validation and test sets by picture, so that no picture is in two splits.

Everything is decided by hashes of the seed and an id: the same files and seed give the same split on any machine, and
another order of the file gives no other.
"""

import hashlib
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from vitcapr.formats.pairs import Pools


def rank(seed: int, purpose: str, identifier: str) -> bytes:
    """A random number for an id, as bytes that sort."""
    return hashlib.sha256(f"{seed}:{purpose}:{identifier}".encode()).digest()


def draw(identifiers: Iterable[str], number: int, seed: int, purpose: str) -> set[str]:
    """``number`` of the ids at random, or all where there are fewer."""
    return set(sorted(identifiers, key=lambda identifier: rank(seed, purpose, identifier))[:number])


def deal(pictures: pd.DataFrame, validation: float, seed: int) -> dict[str, str]:
    """``train`` or ``validation`` for each picture, in the same mixture of classes and languages.

    The pictures are sorted by class, then by how many captions of each language they have, then at random, and every
    so many goes to validation. In each stretch of that order, hence for each class and each mixture of languages, the
    share of validation pictures is met to within one picture.

    Args:
        pictures: columns ``image_id, category`` and the number of captions in each language, ``en`` and ``zh``.
        validation: the share of the pictures, above 0 and below 1.
    """
    rows = pictures[["category", "zh", "en", "image_id"]].itertuples(index=False, name=None)
    order = sorted(rows, key=lambda row: (row[0], row[1], row[2], rank(seed, "split", row[3])))
    share = Fraction(str(validation))
    return {
        image_id: "validation" if int((place + 1) * share) > int(place * share) else "train"
        for place, (_, _, _, image_id) in enumerate(order)
    }


def choose_pools(
    captions: pd.DataFrame, queries: int, candidates: int, seed: int, distractors: Sequence[pd.DataFrame] = ()
) -> Pools:
    """Queries at random, and pools that hold all their true matches and, up to their size, other rows at random.

    Args:
        captions: those of the test split: ``caption_id, image_id, image_row, caption_row``.
        queries: of each direction; fewer where the split has fewer.
        candidates: the size of a pool; fewer where there are fewer, more where the true matches alone are more.
        distractors: captions of further splits, which fill up the pools one after the other.
    """
    pictures = captions.drop_duplicates("image_row")
    asked_images = _rows_of(draw(pictures["image_id"], queries, seed, "image queries"), pictures, "image")
    asked_texts = _rows_of(draw(captions["caption_id"], queries, seed, "text queries"), captions, "caption")
    true_texts = captions["caption_row"][captions["image_row"].isin(asked_images)]
    true_images = captions["image_row"][captions["caption_row"].isin(asked_texts)]
    texts = [captions, *distractors]
    return Pools(
        image_queries=asked_images,
        text_candidates=_filled(true_texts, texts, "caption", candidates, seed),
        text_queries=asked_texts,
        image_candidates=_filled(
            true_images, [table.drop_duplicates("image_row") for table in texts], "image", candidates, seed
        ),
    )


def _rows_of(drawn: set[str], table: pd.DataFrame, kind: str) -> np.ndarray:
    rows = table[f"{kind}_row"][table[f"{kind}_id"].isin(drawn)]
    return np.sort(rows.to_numpy()).astype(np.int32)


def _filled(
    true: "Sequence[int] | pd.Series[int]", tables: Sequence[pd.DataFrame], kind: str, size: int, seed: int
) -> np.ndarray:
    rows = np.unique(np.asarray(true)).astype(np.int32)
    for table in tables:
        others = table[~table[f"{kind}_row"].isin(rows)]
        room = max(0, size - len(rows))
        more = _rows_of(draw(others[f"{kind}_id"], room, seed, f"{kind} candidates"), others, kind)
        rows = np.sort(np.concatenate([rows, more]))
    return rows
