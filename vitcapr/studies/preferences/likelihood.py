"""Captions of an image by their log-likelihood under a captioner, and by what remains of it without the text's own.

Source: Lin et al. 2023, "Revisiting the Role of Language Priors in Vision-Language Models", arXiv 2306.01879.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from vitcapr.data.photographs import open_image
from vitcapr.encoders.language_models import Pieces
from vitcapr.encoders.photographs import PhotographEncoder
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.metrics.bootstrap import Array
from vitcapr.models.interface import Captioner
from vitcapr.text.normalise import words_of

_CAPTIONS = 128
"""In one forward pass."""
_WITHOUT_IMAGE = 32
"""Images whose mean is a likelihood without an image."""


class Photographs(NamedTuple):
    """The features of the photographs in a folder, extracted."""

    encoder: PhotographEncoder
    folder: Path

    def __call__(self, names: Sequence[str]) -> dict[str, Tensor]:
        return self.encoder.encode([open_image(self.folder / name) for name in names])


@dataclass(frozen=True)
class LikelihoodScorer:
    """The log-likelihood of a caption, in nats: the sum over its words and the end.

    A word that the captioner does not know is its ``<unk>``; it is left out if the captioner has none.
    """

    model: Captioner
    words: Vocabulary
    features: Photographs

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
        """Whether the captioner has every word of the caption."""
        return all(pieces and self.words.index.keys() >= set(pieces) for pieces in self._cut(caption))

    def _cut(self, caption: str) -> list[list[str]]:
        """The pieces of each word; the word itself where a captioner knows words."""
        recipe = self.words.recipe.get("text", self.words.recipe)
        words = words_of(caption, **recipe["normalise"])
        return [self._pieces.cut([word]) if self.words.rows else [word] for word in words]

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces(**self.words.recipe["language_model"])

    def without_image(self, images: Sequence[str], captions: Sequence[str]) -> Array:
        """The log of the mean likelihood of each caption over the images: what the captioner expects of a caption
        before it sees one."""
        each = [self([image] * len(captions), captions) for image in images]
        return np.asarray(np.logaddexp.reduce(each, axis=0) - np.log(len(images)))

    def scores(
        self, name: str, images: Sequence[str], captions: Sequence[str], blind: Array | None, alpha: float, seed: int
    ) -> dict[str, Array]:
        """log P(t|i) of the captions t, log P(t) without an image, and log P(t|i) / P(t)^alpha, each (n,).

        Args:
            name: of the captioner; begins the names of the scores.
            blind: log P(t) by a language model; None for none.
            seed: draws the images over which the likelihood is averaged for P(t).
        """
        sample = np.random.default_rng(seed).permutation(np.unique(images))[:_WITHOUT_IMAGE].tolist()
        likelihood, own = self(images, captions), self.without_image(sample, captions)
        scores = {name: likelihood, f"{name}, no image": own, f"{name} / no image": likelihood - alpha * own}
        return scores if blind is None else {**scores, f"{name} / blind": likelihood - alpha * blind}
