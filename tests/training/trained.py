"""Tasks trained in a folder, and stopped where a test says."""

import os
import signal
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.batches.texts import FeatureTexts
from vitcapr.config.training import RetrieverPhaseConfig, TrainingConfig
from vitcapr.errors import Preempted
from vitcapr.models.dual_encoder_model import build_dual_encoder
from vitcapr.progress import Reporter
from vitcapr.training.loop import Position, Trainer
from vitcapr.training.retriever_task import RetrieverTask
from vitcapr.training.saved_state import read_tensors, with_prefix

Ended = tuple[Position, dict[str, torch.Tensor]]


def trainer(task: Any, folder: Path, recipe: TrainingConfig, device: str = "cpu") -> Trainer[Any]:
    return Trainer(
        task,
        recipe,
        device=torch.device(device),
        dtype=torch.float32,
        folder=folder,
        reporter=Reporter(stream=StringIO()),
    )


def train_in(folder: Path, task: Any, recipe: TrainingConfig) -> Ended:
    """Where the training ended, and the state and the best weights that it saved."""
    position, tensors = trainer(task, folder, recipe).run(), {}
    for name in ("state", "best"):
        stored = read_tensors(folder / f"{name}.safetensors")
        tensors |= with_prefix(name, stored[0])
    return position, tensors


def assert_same(one: Ended, other: Ended) -> None:
    assert one[0] == other[0]
    assert [list(row) for row in one[0].history] == [list(row) for row in other[0].history]
    assert one[1].keys() == other[1].keys()
    for name, tensor in one[1].items():
        assert torch.equal(other[1][name], tensor), name


def assert_continues(folder: Path, make: Callable[[], Any], recipe: TrainingConfig, stop_before: int) -> Ended:
    """A training that is stopped before a batch and continued is the uninterrupted one, which is returned."""
    whole, stopped = train_in(folder / "whole", make(), recipe), make()
    stopped.stop_before = stop_before
    with pytest.raises(Preempted, match="SIGTERM"):
        train_in(folder / "parts", stopped, recipe)
    fresh = make()
    torch.manual_seed(99)  # another process would start from another random state
    assert_same(whole, train_in(folder / "parts", fresh, recipe))
    return whole


def feature_task(*phases: RetrieverPhaseConfig, pool: str = "cls", images: int = 12, width: int = 6) -> RetrieverTask:
    """A retriever whose captions, two for each image, are text features that tell the image."""
    draw, owner = np.random.default_rng(0), np.repeat(np.arange(images), 2)
    cls = draw.normal(size=(images, width)).astype(np.float32)
    texts = (cls @ draw.normal(size=(width, width)))[owner].astype(np.float32)
    patches = draw.normal(size=(images, 3, width)).astype(np.float32)
    torch.manual_seed(0)
    towers = {
        "image": {"feature_dim": width, "pool": pool},
        "text": {"kind": "features", "feature_dim": width},
    }
    return RetrieverTask(
        build_dual_encoder({**towers, "embedding_dim": 4, "temperature": 0.1, "learn_temperature": True}),
        [MemoryFeatures(cls=MemoryArray(cls), patches=MemoryArray(patches))],
        FeatureTexts(MemoryArray(texts), np.arange(len(owner)), owner),
        train=np.arange(images),
        validation=np.arange(images),
        phases=phases,
        seed=0,
        device=torch.device("cpu"),
    )


class StopsBefore:
    """Of a task that is asked to stop before a chosen batch."""

    stop_before: int | None = None
    seen = 0

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[Any]:
        for batch in super().batches(phase, epoch, start):  # type: ignore[misc]
            if self.seen == self.stop_before:
                os.kill(os.getpid(), signal.SIGTERM)
            self.seen += 1
            yield batch
