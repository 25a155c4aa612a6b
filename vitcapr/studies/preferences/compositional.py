"""Compositional pairs: does a model prefer the true caption of an image to one with a word changed, added or moved?

Their files have the form of SugarCrepe (Hsieh et al. 2023).
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import read_field, read_json
from vitcapr.formats.records import reading
from vitcapr.metrics.bootstrap import Array, compare, interval, ratio_measure

Embed = Callable[[Sequence[str]], Array]
"""From n sentences or names of images to vectors (n, D)."""
CHANCE = 0.5
_WORD = re.compile("[a-z0-9']+")


class FoilPair(NamedTuple):
    """A caption of an image, and the foil."""

    split: str
    image: str
    caption: str
    foil: str

    @property
    def same_words(self) -> bool:
        """Whether both are the same bag of words, which a model that ignores their order cannot tell apart."""
        bags = (Counter(_WORD.findall(text.lower())) for text in (self.caption, self.foil))
        return next(bags) == next(bags)


def read_foils(path: Path) -> list[FoilPair]:
    """The pairs of a file; its name is the split.

    Raises:
        UserError: it is not of the form of SugarCrepe.
    """
    with reading(path, "compositional pairs", "give a file in the form of SugarCrepe"):
        pairs = []
        for name, entry in read_json(path).items():
            try:
                texts = (read_field(entry, each, str) for each in ("filename", "caption", "negative_caption"))
                pairs.append(FoilPair(path.stem, *texts))
            except TypeError as error:
                raise TypeError(f"{error} (entry {name})") from error
    if not pairs:
        raise UserError("there is no pair", where=path)
    return pairs


class Preferences(NamedTuple):
    """Attributes:
    accuracies: a row for each scorer and split, and for ``all``: ``scorer, split, accuracy, low, high, pairs, images,
        same_words, order_blind``. ``order_blind`` is the best accuracy of a model that ignores the order of words.
    differences: a row for each split and two scorers, of ``scorer`` less ``other``: ``split, scorer, other, difference,
        low, high, p_value``.
    """

    accuracies: pd.DataFrame
    differences: pd.DataFrame


def score_foils(pairs: Sequence[FoilPair], scores: Mapping[str, Array], samples: int, seed: int) -> Preferences:
    """How often a caption has a higher score than its foil; a tie counts one half.

    The 95 % intervals and the paired test resample the images with all their pairs.

    Args:
        scores: of each scorer, those of all captions and then of all foils: (2 * pairs,).
    """
    splits = np.array([pair.split for pair in pairs])
    images = np.array([pair.image for pair in pairs])
    same = np.array([pair.same_words for pair in pairs])
    rows, differences = [], []
    for split in [*dict.fromkeys(splits.tolist()), "all"]:
        chosen = (splits == split) | (split == "all")
        numbers = pd.factorize(images[chosen])[0]
        count, number = int(chosen.sum()), int(same[chosen].sum())
        measures = {}
        for name, each in scores.items():
            true, false = np.split(each, 2)
            # A model that ignores word order scores equal bags of words equally, but for rounding.
            right = np.where(np.isclose(true, false, rtol=1e-6, atol=1e-6), CHANCE, true > false)[chosen]
            measures[name] = ratio_measure(np.bincount(numbers, right), np.bincount(numbers))
            bounds = interval(measures[name], samples, seed) or (np.nan, np.nan)
            counts = count, int(numbers.max()) + 1, number, 1 - CHANCE * number / count
            rows.append([name, split, measures[name].value, *bounds, *counts])
        for name, other in combinations(measures if samples else (), 2):
            differences.append([split, name, other, *compare(measures[name], measures[other], samples, seed)])
    columns = ["scorer", "split", "accuracy", "low", "high", "pairs", "images", "same_words", "order_blind"]
    compared = ["split", "scorer", "other", "difference", "low", "high", "p_value"]
    return Preferences(pd.DataFrame(rows, columns=columns), pd.DataFrame(differences, columns=compared))


def cosines(embed_images: Embed, embed_texts: Embed, images: Sequence[str], captions: Sequence[str]) -> Array:
    """The cosine of each image and its caption, by a retriever or an alignment, whose vectors have length 1: (n,)."""
    vectors = embed_once(embed_images, images), embed_texts(captions)
    return np.asarray(np.einsum("nd,nd->n", *(each.astype(np.float64) for each in vectors)))


def embed_once(embed: Embed, entries: Sequence[str]) -> Array:
    """The vectors of the entries, computed once for equal ones: (n, D)."""
    different, place = np.unique(entries, return_inverse=True)
    return embed(different.tolist())[place]
