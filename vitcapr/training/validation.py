"""CIDEr of greedy captions of the validation split: a decoded score by which to choose an epoch."""

import numpy as np
import torch
from pycocoevalcap.cider.cider import Cider

from vitcapr.decoding.stepwise import greedy
from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.interface import Captioner
from vitcapr.store.reader import FeatureStore


class GreedyCider:
    """Scores a captioner on the images ``rows``; references are the captions as the vocabulary knows them.

    The tokenizer is the training's own, not PTB, so the number ranks epochs and is not to be reported.
    """

    def __init__(
        self,
        store: FeatureStore,
        tokens: TokenTable,
        vocabulary: Vocabulary,
        rows: np.ndarray,
        *,
        max_length: int,
        batch_images: int,
        device: torch.device,
    ) -> None:
        self._store, self._vocabulary = store, vocabulary
        self._max_length, self._batch_images, self._device = max_length, batch_images, device
        wanted = set(rows.tolist())
        self._references: dict[int, list[str]] = {}
        for caption, row in enumerate(tokens.image_row.tolist()):
            if row in wanted:
                self._references.setdefault(row, []).append(vocabulary.decode(tokens[caption].tolist()))
        self._rows = np.array(sorted(self._references))

    def __call__(self, model: Captioner) -> dict[str, float]:
        captions: dict[int, list[str]] = {}
        for first in range(0, len(self._rows), self._batch_images):
            rows = self._rows[first : first + self._batch_images]
            features = {
                name: torch.from_numpy(self._store[name].gather(rows)).to(self._device).float() for name in model.arrays
            }
            hypotheses = greedy(
                model,
                model.encode(features),
                start=self._vocabulary.start,
                end=self._vocabulary.end,
                pad=self._vocabulary.pad,
                forbidden=[] if self._vocabulary.unknown is None else [self._vocabulary.unknown],
                max_length=self._max_length,
            )
            for row, hypothesis in zip(rows.tolist(), hypotheses, strict=True):
                captions[row] = [self._vocabulary.decode(hypothesis.tokens)]
        score, _ = Cider().compute_score(self._references, captions)
        return {"validation_cider": float(score)}
