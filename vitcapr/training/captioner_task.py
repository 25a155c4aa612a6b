"""Training a captioner, by a loss of the captions of a split or of captions that it draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vitcapr.batches.image_batches import Batch, Batches
from vitcapr.batches.sources import FeatureSource, feature_dims, read_rows
from vitcapr.batches.texts import PAD, WordTexts
from vitcapr.config.captioner import CaptionerConfig
from vitcapr.config.objective import CaptionerLoss, TrainingCaptions, Words
from vitcapr.config.training import CaptionerPhaseConfig, CaptionerTrainingConfig
from vitcapr.encoders.devices import dtype_name, to_device
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import read_model, rebuild
from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.training_files import History
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.interface import Captioner, build_captioner, find_pretrained
from vitcapr.store.reader import FeatureStore
from vitcapr.training import distributed
from vitcapr.training.outcome import TrainingJob, check_scalar
from vitcapr.training.phases import images_in_batch
from vitcapr.training.reward import GreedyCider
from vitcapr.training.saved_state import start_embedding

_BLOCK = 100
"""Images that are read at a time."""


@dataclass(frozen=True)
class TrainingImages:
    """The images to train on, for a captioner that starts from them.

    Attributes:
        store: their features.
        tokens: the captions of the data set.
        rows: (N,) int64, their rows.
        seed: of the training.
    """

    store: FeatureSource
    tokens: TokenTable
    rows: np.ndarray
    seed: int

    @property
    def captioned(self) -> np.ndarray:
        """The rows of those that have a caption."""
        return self.rows[np.isin(self.rows, self.tokens.image_row)]

    def blocks(self, arrays: Sequence[str], rows: np.ndarray) -> Iterator[dict[str, Tensor]]:
        """Yield arrays of some images as float32, a block of images at a time."""
        for first in range(0, len(rows), _BLOCK):
            read = read_rows(self.store, arrays, rows[first : first + _BLOCK], torch.device("cpu"))
            yield {name: array.float() for name, array in read.items()}

    def first_captions(self, rows: np.ndarray) -> list[Tensor]:
        """Return the words of the first caption of each image, start and end included."""
        owners = self.tokens.image_row.tolist()
        first = dict(zip(reversed(owners), range(len(owners) - 1, -1, -1), strict=True))
        return [torch.from_numpy(np.asarray(self.tokens[first[row]], np.int64)) for row in rows.tolist()]


def train_captioner(
    job: TrainingJob,
    captioner: CaptionerConfig,
    data: Manifest,
    store: FeatureStore,
    words: Vocabulary,
    tokens: TokenTable,
    *,
    word_vectors: Path | None,
    start: Path | None,
) -> None:
    """Train a captioner, and write its files.

    Args:
        job: its card lacks architecture and backbone.
        tokens: the captions of ``data`` in the numbers of ``words``.
        word_vectors: ``vectors.npy``, from which the embedding starts.
        start: folder of a captioner of the same architecture, from whose weights training starts.
    """
    training = captioner.training
    architecture = {
        "kind": captioner.architecture,
        "vocabulary": len(words),
        **feature_dims(store, captioner.arrays),
        **captioner.described(),
    }
    job = job.describe(architecture=architecture, backbone=captioner.backbone)
    pretrained = find_pretrained(captioner.architecture, captioner.model_dump())
    if pretrained is not None:
        job = job.describe(language_model=pretrained.card)
    dtype = job.dtype(training.precision)
    network = {} if pretrained is None else {"network": pretrained.open(words, dtype)}
    torch.manual_seed(job.seed)
    model = build_captioner(architecture, **network)
    assert {*model.arrays} == {*captioner.arrays}, "the section of an architecture declares other arrays than its model"
    if word_vectors is not None:
        start_embedding(model.embedding, word_vectors, "the captioner's embedding_dim")
    if start is not None:
        start_from(model, architecture, start)
    train, validation = data.rows("train"), data.rows("validation")
    if start is None:
        model.begin(TrainingImages(store, tokens, train, job.seed))
    rows: dict[str, Any] = {"train": train, "validation": validation, "vocabulary": words}
    task = CaptionerTask(model, store, tokens, training, seed=job.seed, device=job.device, **rows)
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    job.reporter.line(f"{trained:,} weights to train, {len(words):,} words, {dtype_name(dtype)} on {job.device}")
    job.train(lambda: task, training, dtype, rows=lambda history: history_with_rewards(history, training.phases))


Step = tuple[CaptionerLoss, Any, Batch]
"""The loss of a phase, the loss of the captions that it draws or None, and a batch."""


class CaptionerTask:
    """Trains the next word given the previous words and the image (ViTCap-R, equation 1).

    Args:
        train, validation: rows of the images of each split.
        vocabulary: of the tokens; for losses of drawn captions and for CIDEr as the validation score.
    """

    def __init__(
        self,
        model: Captioner,
        store: FeatureStore,
        tokens: TokenTable,
        training: CaptionerTrainingConfig,
        *,
        train: np.ndarray,
        validation: np.ndarray,
        seed: int,
        device: torch.device,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self.model: Captioner = model
        self._store, self._tokens, self._training = store, tokens, training
        self._train, self._validation = train, validation
        self._seed, self._device = seed, device
        losses = [(phase.objective, phase.max_length) for phase in training.phases]
        self._losses: list[tuple[CaptionerLoss, Any]] = [
            (loss, None if vocabulary is None else loss.draw(TrainingCaptions(tokens, train, vocabulary, longest)))
            for loss, longest in losses
        ]
        self._cider = None
        if training.select_by == "cider" and vocabulary is not None:
            self._cider = GreedyCider(store, tokens, vocabulary, validation, training, device)

    def _open(self, rows: np.ndarray, phase: CaptionerPhaseConfig, **options: Any) -> Batches:
        return Batches(
            self._store,
            WordTexts(self._tokens, phase.max_length),
            rows,
            batch_images=images_in_batch(phase, len(self._train)),
            arrays=self.model.arrays,
            device=self._device,
            **options,
        )

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[Step]:
        for batch in self._open_training(phase, epoch, start_batch=start, share=distributed.share()):
            yield *self._losses[phase], batch

    def steps(self, phase: int) -> int:
        return len(self._open_training(phase, epoch=0))

    def _open_training(self, number: int, epoch: int, **options: Any) -> Batches:
        phase = self._training.phases[number]
        options |= {"batch_pairs": phase.batch_pairs, "shuffle_chunks": phase.shuffle_chunks}
        return self._open(self._train, phase, seed=self._seed, epoch=epoch, **options)

    def _features(self, batch: Batch) -> dict[str, Tensor]:
        return {name: to_device(array, self._device).float() for name, array in batch.features.items()}

    def _words(self, batch: Batch) -> Words:
        mask = batch.texts[:, 1:] != PAD
        targets = to_device(batch.texts[:, 1:][mask], self._device)
        tokens = to_device(batch.texts[:, :-1], self._device)
        logits = self.model(self.model.encode(self._features(batch)), tokens, mask, batch.image_index)
        return Words(logits, targets, tokens, mask)

    def loss(self, batch: Step) -> tuple[Tensor, int]:
        """Return the mean loss of a word and the number of words, or of a drawn caption and the number of captions.

        Among several processes, a self-critical loss is a mean over the words that each has drawn, weighed by captions.

        Raises:
            UserError: the loss is not a scalar.
        """
        objective, drawn, read = batch
        if not len(read.rows):
            return distributed.zero_loss(self.model), 0
        if drawn is not None:
            loss, items = drawn.loss(self.model, self._features(read), read.rows)
        else:
            words = self._words(read)
            loss, items = objective.loss(words), len(words.targets)
        return check_scalar(loss, objective), items

    def validate(self) -> dict[str, float]:
        """Mean cross-entropy a word in nats, without smoothing; and CIDEr if it selects the epoch."""
        total, words = 0.0, 0
        for batch in self._open(self._validation, self._training.phases[-1], seed=0, epoch=0, shuffle=False):
            read = self._words(batch)
            total += float(nn.functional.cross_entropy(read.logits, read.targets, reduction="sum"))
            words += len(read.targets)
        scores = {"validation_loss": total / words}
        return scores if self._cider is None else scores | {"validation_cider": self._cider.score(self.model)}


def start_from(model: Captioner, architecture: dict[str, Any], folder: Path) -> None:
    """Give ``model`` the weights of the captioner in ``folder``.

    Raises:
        UserError: that captioner has another architecture.
    """
    weights, card = read_model(folder)
    there = card["architecture"] | {key: architecture[key] for key in ("dropout",) if key in architecture}
    for key in sorted(architecture.keys() | there.keys()):
        if architecture.get(key) != there.get(key):
            raise UserError(
                f"a captioner with {key} {architecture.get(key)} cannot start from one with {there.get(key)}",
                where=folder,
                remedy="give both captioners the same architecture",
            )
    rebuild(folder, lambda _: model, card, weights)


def history_with_rewards(history: History, phases: list[CaptionerPhaseConfig]) -> History:
    """Return a row an epoch.

    If the loss of a phase is minus a reward, the mean reward stands in ``train_reward``.
    """
    if not any(phase.objective.rewards for phase in phases):
        return history
    rows: list[dict[str, float | str]] = []
    for row in history:
        first: dict[str, float | str] = {name: row[name] for name in ("epoch", "phase", "train_loss")}
        first["train_reward"] = ""
        if phases[int(row["phase"]) - 1].objective.rewards:
            first |= {"train_loss": "", "train_reward": -float(row["train_loss"])}
        rows.append(first | {name: row[name] for name in row if name not in first})
    return rows
