"""Compositional pairs: does a model prefer the true caption of an image to one with a word changed, added or moved?

The form is that of SugarCrepe (Hsieh et al. 2023): a JSON object of ``filename``, ``caption`` and ``negative_caption``.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.files import read_json
from vitcapr.formats.records import reading
from vitcapr.metrics.bootstrap import Array, interval, ratio_measure

Scorer = Callable[[Sequence[str], Sequence[str]], Array]
"""From n names of images and n captions to n scores, higher for a better fit. A blind one does not read the images."""
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
        UserError: it is not of SugarCrepe's form.
    """
    with reading(path, "compositional pairs", "give an object of filename, caption and negative_caption"):
        entries = read_json(path).values()
        names = ("filename", "caption", "negative_caption")
        pairs = [FoilPair(path.stem, *(str(entry[name]) for name in names)) for entry in entries]
    if not pairs:
        raise UserError("there is no pair", where=path)
    return pairs


def score_foils(pairs: Sequence[FoilPair], scorers: Mapping[str, Scorer], samples: int, seed: int) -> pd.DataFrame:
    """A row for each scorer and split, and for ``all``.

    Columns: ``scorer, split, accuracy, low, high, pairs, images, same_words, order_blind``. ``accuracy`` is the share
    of the pairs whose caption has the higher score; a tie counts one half. The 95 % interval resamples the images with
    all their pairs. ``order_blind`` is the best accuracy of a model that ignores the order of words.
    """
    splits = np.array([pair.split for pair in pairs])
    images = np.array([pair.image for pair in pairs])
    same = np.array([pair.same_words for pair in pairs])
    texts = [pair.caption for pair in pairs] + [pair.foil for pair in pairs]
    rows = []
    for name, scorer in scorers.items():
        true, false = np.split(scorer([*images, *images], texts), 2)
        # A model that ignores word order scores equal bags of words equally, but for rounding.
        right = np.where(np.isclose(true, false, rtol=1e-6, atol=1e-6), CHANCE, true > false)
        for split in [*dict.fromkeys(splits.tolist()), "all"]:
            chosen = (splits == split) | (split == "all")
            numbers = pd.factorize(images[chosen])[0]
            count = int(chosen.sum())
            measure = ratio_measure(np.bincount(numbers, right[chosen]), np.bincount(numbers))
            low, high = interval(measure, samples, seed) or (np.nan, np.nan)
            ceiling = 1 - CHANCE * same[chosen].mean()
            number = int(same[chosen].sum()), float(ceiling)
            rows.append([name, split, measure.value, low, high, count, int(numbers.max()) + 1, *number])
    columns = ["scorer", "split", "accuracy", "low", "high", "pairs", "images", "same_words", "order_blind"]
    return pd.DataFrame(rows, columns=columns)


def cosine_scorer(embed_images: Embed, embed_texts: Embed) -> Scorer:
    """The cosine of a retriever or an alignment, whose vectors have length 1."""

    def score(images: Sequence[str], captions: Sequence[str]) -> Array:
        vectors = embed_once(embed_images, images), embed_texts(captions)
        return np.asarray(np.einsum("nd,nd->n", *(each.astype(np.float64) for each in vectors)))

    return score


def embed_once(embed: Embed, entries: Sequence[str]) -> Array:
    """The vectors of the entries, computed once for equal ones: (n, D)."""
    different, place = np.unique(entries, return_inverse=True)
    return embed(different.tolist())[place]
