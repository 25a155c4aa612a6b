"""Training a captioner: teacher-forced cross-entropy over the captions of a split, or a reward for its own captions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vitcapr.batches.loader import PAD, CaptionBatch, CaptionBatches
from vitcapr.formats.tokens import TokenTable
from vitcapr.models.interface import Captioner
from vitcapr.store.reader import FeatureStore
from vitcapr.training import distributed
from vitcapr.training.self_critical import SelfCritical

Scorer = Callable[[Captioner], dict[str, float]]
"""Further validation scores of a captioner in evaluation mode, by the name of their column in the history."""


@dataclass(frozen=True)
class SelfCriticalBatch(CaptionBatch):
    """A batch of a self-critical phase; its captions are not read."""

    objective: SelfCritical


class CaptionerTask:
    """Trains the next word given the previous words and the image (ViTCap-R, equation 1).

    Args:
        train, validation: rows of the images of each split.
        batch_images, max_length: images in a batch and longest caption, a value for each phase.
        batch_pairs: pairs in a batch of each phase, where an epoch is every pair once; None draws images.
        label_smoothing: share of the target spread over the vocabulary, in training with cross-entropy only.
        self_critical: the objective of each phase, None for cross-entropy; by default all are.
        scorer: further validation scores; None for the loss alone.
    """

    def __init__(
        self,
        model: Captioner,
        store: FeatureStore,
        tokens: TokenTable,
        *,
        train: np.ndarray,
        validation: np.ndarray,
        batch_images: list[int],
        max_length: list[int],
        label_smoothing: float,
        seed: int,
        device: torch.device,
        batch_pairs: Sequence[int | None] | None = None,
        self_critical: Sequence[SelfCritical | None] | None = None,
        scorer: Scorer | None = None,
    ) -> None:
        self.model: Captioner = model
        self._store, self._tokens = store, tokens
        self._train, self._validation = train, validation
        self._batch_images, self._max_length = batch_images, max_length
        self._batch_pairs = batch_pairs or [None] * len(batch_images)
        self._smoothing, self._seed, self._device, self._scorer = label_smoothing, seed, device, scorer
        self._self_critical = self_critical or [None] * len(batch_images)

    def _open(self, rows: np.ndarray, phase: int, **options: Any) -> CaptionBatches:
        return CaptionBatches(
            self._store,
            {"ids": self._tokens.ids, "offsets": self._tokens.offsets, "image_row": self._tokens.image_row},
            rows,
            batch_images=self._batch_images[phase],
            max_length=self._max_length[phase],
            arrays=self.model.arrays,
            **options,
        )

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[CaptionBatch]:
        objective = self._self_critical[phase]
        for batch in self._open_training(phase, epoch, start_batch=start, share=distributed.share()):
            yield batch if objective is None else SelfCriticalBatch(**vars(batch), objective=objective)

    def steps(self, phase: int) -> int:
        return len(self._open_training(phase, epoch=0))

    def _open_training(self, phase: int, epoch: int, **options: Any) -> CaptionBatches:
        pairs = self._batch_pairs[phase]
        return self._open(self._train, phase, seed=self._seed, epoch=epoch, batch_pairs=pairs, **options)

    def _features(self, batch: CaptionBatch) -> dict[str, Tensor]:
        return {name: array.to(self._device).float() for name, array in batch.features.items()}

    def _logits(self, batch: CaptionBatch) -> tuple[Tensor, Tensor]:
        """Logits (n, V) and targets (n,) of the n words to be predicted."""
        tokens = batch.tokens.to(self._device)
        targets = tokens[:, 1:]
        mask = targets != PAD
        memory = self.model.encode(self._features(batch))
        return self.model(memory, tokens[:, :-1], mask, batch.image_index.to(self._device)), targets[mask]

    def loss(self, batch: CaptionBatch) -> tuple[Tensor, int]:
        """Mean cross-entropy a word or, in a self-critical phase, minus the mean reward of a caption.

        Among several processes, a self-critical loss is a mean over the words that each has drawn, weighed by captions.
        """
        if not len(batch.rows):
            return distributed.nothing(self.model), 0
        if isinstance(batch, SelfCriticalBatch):
            return batch.objective.loss(self.model, self._features(batch), batch.rows)
        logits, targets = self._logits(batch)
        return nn.functional.cross_entropy(logits, targets, label_smoothing=self._smoothing), len(targets)

    def validate(self) -> dict[str, float]:
        """Mean cross-entropy a word in nats, without smoothing, and what the scorer adds."""
        total, words = 0.0, 0
        for batch in self._open(self._validation, len(self._max_length) - 1, seed=0, epoch=0, shuffle=False):
            logits, targets = self._logits(batch)
            total += float(nn.functional.cross_entropy(logits, targets, reduction="sum"))
            words += len(targets)
        return {"validation_loss": total / words, **(self._scorer(self.model) if self._scorer else {})}
