"""Training a cross-attention reranker: small groups of images that a retriever takes for one another."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vitcapr.features.batches.captions import Captions
from vitcapr.features.batches.loader import FeatureSource
from vitcapr.models.cross_attention import CrossEncoder
from vitcapr.training.contrastive import info_nce

_BLOCK = 256
"""Images compared at a time when neighbours are looked for."""
_VALIDATION = 1
"""Tells the draws of validation from those of an epoch."""


@dataclass(frozen=True)
class GroupPhase:
    """Of a phase, what the task needs to know.

    Attributes:
        groups: in a batch.
        images: in a group, each with one caption; one image is drawn, the others are its neighbours.
    """

    groups: int
    images: int


@dataclass(frozen=True)
class GroupBatch:
    """G groups of N images, each with one caption.

    Attributes:
        images: (G, N), rows of the manifest's images.
        captions: (G, N), each a caption of the image at its place.
    """

    images: NDArray[np.int64]
    captions: NDArray[np.int64]


@dataclass(frozen=True)
class Pool:
    """A split's images and captions as a retriever sees them.

    Attributes:
        image_row: (N,), rows of the manifest's images.
        neighbours: (N, R), for each image the places of those whose captions it finds first, its own left out.
        captions: the captions of each image.
    """

    image_row: NDArray[np.int64]
    neighbours: NDArray[np.int32]
    captions: tuple[NDArray[np.int64], ...]


def neighbours(
    images: NDArray[np.float32],
    captions: NDArray[np.float32],
    caption_image: NDArray[np.integer],
    count: int,
    advance: Callable[[int], None] = lambda _: None,
) -> NDArray[np.int32]:
    """(N, count) int32: the other images with which each is most likely confused, the likeliest first.

    An image is as near as its nearest caption: the cosine of that with the image that is asked for.

    Args:
        images: (N, E), captions: (M, E), unit length, the captions in the order of their images.
        caption_image: (M,).
        advance: told how many images are done.

    Raises:
        ValueError: there are not so many other images.
    """
    if count >= len(images):
        raise ValueError(f"{count} neighbours of each of {len(images)} images")
    starts = np.searchsorted(caption_image, np.arange(len(images)))
    found = np.empty((len(images), count), np.int32)
    for first in range(0, len(images), _BLOCK):
        block = slice(first, first + _BLOCK)
        here = images[block]
        near = np.maximum.reduceat(here @ captions.T, starts, axis=1)
        near[np.arange(len(here)), np.arange(first, first + len(here))] = -np.inf
        top = np.argpartition(-near, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(near, top, axis=1), axis=1, kind="stable")
        found[block] = np.take_along_axis(top, order, axis=1)
        advance(len(here))
    return found


class CrossEncoderTask:
    """True pairs against those that a trained retriever confuses with them, in both directions.

    A group is an image drawn at random and some of its nearest neighbours, each with one caption; all pairs of a group
    are scored, and of each row and each column the true pair has to win (a softmax over the matching logits).
    """

    def __init__(
        self,
        model: CrossEncoder,
        store: FeatureSource,
        captions: Captions,
        *,
        train: Pool,
        validation: Pool,
        phases: Sequence[GroupPhase],
        seed: int,
        device: torch.device,
    ) -> None:
        self.model = model
        self._store, self._captions = store, captions
        self._train, self._validation, self._phases = train, validation, phases
        self._seed, self._device = seed, device

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[GroupBatch]:
        settings = self._phases[phase]
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._train.image_row))
        for number in range(start, self.steps(phase)):
            drawn = order[number * settings.groups : (number + 1) * settings.groups]
            yield _groups(self._train, drawn, settings.images, np.random.default_rng([self._seed, epoch, number]))

    def steps(self, phase: int) -> int:
        return -(-len(self._train.image_row) // self._phases[phase].groups)

    def loss(self, batch: GroupBatch) -> tuple[Tensor, int]:
        """The mean loss a true pair, and how many of them there are."""
        logits = self._logits(batch)
        with torch.autocast(self._device.type, enabled=False):
            return _matching_loss(logits), batch.images.size

    def _logits(self, batch: GroupBatch) -> Tensor:
        """(G, N, N) float32: images by captions."""
        groups, each = batch.images.shape
        rows = batch.images.ravel()
        patches, cls = (
            torch.from_numpy(self._store[name].gather(rows)).to(self._device) for name in ("patches", "cls")
        )
        memory = self.model.remember(patches.float(), cls.float())
        tokens, features = self._captions.of(batch.captions.ravel(), self._device)
        reading = self.model.understand(tokens, features)

        def for_each_image(values: Tensor) -> Tensor:
            """A group's captions, once for each of its images: (G * N, N, ...)."""
            of_group = values.view(groups, 1, each, *values.shape[1:])
            return of_group.expand(groups, each, *of_group.shape[2:]).flatten(0, 1)

        logits = self.model.match(memory, for_each_image(reading.states), for_each_image(reading.real))
        return logits.view(groups, each, each)

    def validate(self) -> dict[str, float]:
        """The loss a true pair and the share of true pairs that win, over groups of the validation split.

        Every image draws one group, always the same.
        """
        settings = self._phases[-1]
        lot = np.random.default_rng([self._seed, 0, _VALIDATION])
        total, won, pairs = 0.0, 0.0, 0
        count = len(self._validation.image_row)
        for first in range(0, count, settings.groups):
            drawn = np.arange(first, min(first + settings.groups, count))
            batch = _groups(self._validation, drawn, settings.images, lot)
            logits = self._logits(batch)
            total += float(_matching_loss(logits)) * batch.images.size
            truth = torch.arange(logits.shape[1], device=logits.device)
            won += sum(float((logits.argmax(axis) == truth).sum()) / 2 for axis in (1, 2))
            pairs += batch.images.size
        return {"validation_loss": total / pairs, "validation_accuracy": won / pairs}


def _matching_loss(logits: Tensor) -> Tensor:
    """The mean over groups of the symmetric cross-entropy of (G, N, N) logits."""
    truth = torch.arange(logits.shape[1], device=logits.device)
    one = torch.ones((), device=logits.device)
    return torch.stack([info_nce(group, truth, one) for group in logits]).mean()


def _groups(pool: Pool, drawn: NDArray[np.int64], images: int, lot: np.random.Generator) -> GroupBatch:
    """Each of the ``drawn`` images with neighbours of its own, and a caption of each."""
    near = pool.neighbours[drawn]
    picked = np.argsort(lot.random(near.shape), axis=1)[:, : images - 1]
    places = np.concatenate([drawn[:, None], np.take_along_axis(near, picked, axis=1)], axis=1)
    lots = lot.random(places.shape)
    captions = [
        pool.captions[place][int(share * len(pool.captions[place]))]
        for place, share in zip(places.ravel().tolist(), lots.ravel().tolist(), strict=True)
    ]
    return GroupBatch(pool.image_row[places], np.array(captions, np.int64).reshape(places.shape))
