"""Compositional pairs: the true caption of an image, and one with a word changed, added or moved.

Their files have the form of SugarCrepe (Hsieh et al. 2023). A captioner scores a caption by its log-likelihood, and by
what remains of it without the text's own: Lin et al. 2023, "Revisiting the Role of Language Priors in Vision-Language
Models", arXiv 2306.01879.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from vitcapr.encoders.language_models import Pieces
from vitcapr.errors import UserError
from vitcapr.files import read_field, read_json
from vitcapr.formats.records import reading
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.metrics.bootstrap import Array, compare, interval, ratio_measure
from vitcapr.models.interface import Captioner
from vitcapr.text.normalise import words_of

Embed = Callable[[Sequence[str]], Array]
"""From n sentences or names of images to vectors (n, D)."""
CHANCE = 0.5
_CAPTIONS = 128
"""In one forward pass."""
_WITHOUT_IMAGE = 32
"""Images whose mean is a likelihood without an image."""
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
    """Return the pairs of a file; its name is the split.

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
    """Preferences of scorers among pairs.

    Attributes:
        accuracies: a row for each scorer and split, and for ``all``: ``scorer, split, accuracy, low, high, pairs,
            images, same_words, order_blind``. ``order_blind`` is the best accuracy of a model that ignores word order.
        differences: a row for each split and two scorers, of ``scorer`` less ``other``: ``split, scorer, other,
            difference, low, high, p_value``.
    """

    accuracies: pd.DataFrame
    differences: pd.DataFrame


def score_foils(pairs: Sequence[FoilPair], scores: Mapping[str, Array], samples: int, seed: int) -> Preferences:
    """Return the share of captions with a higher score than their foils; a tie counts one half.

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
    """Return the cosine of each image and its caption, by a retriever or an alignment: (n,).

    Their vectors have length 1.
    """
    vectors = embed_once(embed_images, images), embed_texts(captions)
    return np.asarray(np.einsum("nd,nd->n", *(each.astype(np.float64) for each in vectors)))


def embed_once(embed: Embed, entries: Sequence[str]) -> Array:
    """Return the vectors of the entries, computed once for equal ones: (n, D)."""
    different, place = np.unique(entries, return_inverse=True)
    return embed(different.tolist())[place]


@dataclass(frozen=True)
class LikelihoodScorer:
    """The log-likelihood of a caption, in nats: the sum over its words and the end.

    A word that the captioner does not know is its ``<unk>``; it is left out if the captioner has none.

    Attributes:
        features: from names of images to their features.
    """

    model: Captioner
    words: Vocabulary
    features: Callable[[Sequence[str]], dict[str, Tensor]]

    @torch.inference_mode()
    def __call__(self, images: Sequence[str], captions: Sequence[str]) -> Array:
        names, image = np.unique(images, return_inverse=True)
        order, scores = np.argsort(image, kind="stable"), np.empty(len(captions))
        for places in np.split(order, range(_CAPTIONS, len(order), _CAPTIONS)):
            chosen, index = np.unique(image[places], return_inverse=True)
            memory = self.model.encode(self.features(names[chosen].tolist()))
            rows = [torch.tensor(self.words.encode(chain(*self._cut(captions[place])))) for place in places]
            padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self.words.pad)
            read, target = padded[:, :-1], padded[:, 1:]
            mask = target != self.words.pad
            device = self.model.embedding.weight.device
            logits = self.model(memory, read.to(device), mask, torch.from_numpy(index))
            losses = nn.functional.cross_entropy(logits, target[mask].to(device), reduction="none").cpu().double()
            scores[places] = -torch.zeros(mask.shape, dtype=torch.float64).masked_scatter(mask, losses).sum(1).numpy()
        return scores

    def knows(self, caption: str) -> bool:
        """Return whether the captioner has every word of the caption."""
        return all(pieces and self.words.index.keys() >= set(pieces) for pieces in self._cut(caption))

    def _cut(self, caption: str) -> list[list[str]]:
        """Return the pieces of each word; the word itself where a captioner knows words."""
        recipe = self.words.recipe.get("text", self.words.recipe)
        words = words_of(caption, **recipe["normalise"])
        return [self._pieces.cut([word]) if self.words.rows else [word] for word in words]

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces(**self.words.recipe["language_model"])

    def without_image(self, images: Sequence[str], captions: Sequence[str]) -> Array:
        """Return the log of the mean likelihood of each caption over the images.

        This is the captioner's expectation of the caption before it sees an image.
        """
        each = [self([image] * len(captions), captions) for image in images]
        return np.asarray(np.logaddexp.reduce(each, axis=0) - np.log(len(images)))

    def scores(
        self, name: str, images: Sequence[str], captions: Sequence[str], blind: Array | None, alpha: float, seed: int
    ) -> dict[str, Array]:
        """Log P(t|i) of the captions t, log P(t) without an image, and log P(t|i) / P(t)^alpha, each (n,).

        Args:
            name: of the captioner; begins the names of the scores.
            blind: log P(t) by a language model; None for none.
            seed: draws the images over which the likelihood is averaged for P(t).
        """
        sample = np.random.default_rng(seed).permutation(np.unique(images))[:_WITHOUT_IMAGE].tolist()
        likelihood, own = self(images, captions), self.without_image(sample, captions)
        scores = {name: likelihood, f"{name}, no image": own, f"{name} / no image": likelihood - alpha * own}
        return scores if blind is None else {**scores, f"{name} / blind": likelihood - alpha * blind}
