"""Two processes with half of every batch each learn what one learns from the whole."""

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch._dynamo  # the optimiser's first step imports it, which every forked process would do for itself

from tests.data_sets import token_table
from tests.models.untrained import untrained
from tests.training.trained import feature_task, trainer
from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.batches.texts import WordTexts
from vitcapr.config.training import (
    CaptionerPhaseConfig,
    CaptionerTrainingConfig,
    PhaseConfig,
    RetrieverPhaseConfig,
    TrainingConfig,
)
from vitcapr.errors import Preempted
from vitcapr.formats.tokens import TokenTable
from vitcapr.models.dual_encoder_model import build_dual_encoder
from vitcapr.progress import Reporter
from vitcapr.training import distributed
from vitcapr.training.captioner_task import CaptionerTask
from vitcapr.training.distributed import joined
from vitcapr.training.outcome import TrainingJob
from vitcapr.training.retriever_task import RetrieverTask
from vitcapr.training.saved_state import read_tensors

IMAGES, WIDTH, SPACE, WORDS = 14, 6, 4, 9
SMOOTHED = {"kind": "cross_entropy", "label_smoothing": 0.1}
TRAIN, VALIDATION = np.arange(9), np.arange(9, IMAGES)
CPU = torch.device("cpu")
PHASE = PhaseConfig(epochs=1, learning_rate=0.02, schedule="cosine", warmup_steps=2)
RECIPE = TrainingConfig(phases=[PHASE] * 3, ema_decay=0.9)


def run_in(processes: int, work: Callable[[Path], None], folder: Path) -> None:
    """``work(folder)`` in each process of a group; forked, because importing torch takes longer than the work.

    One process is forked too and has no group: what is compared has been run alike.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def be(rank: int) -> None:
        torch.set_num_threads(1)
        if processes > 1:
            place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "MASTER_PORT": port}
            os.environ.update({name: str(value) for name, value in place.items()}, MASTER_ADDR="127.0.0.1")
        with joined(torch.device("cpu")):
            work(folder)

    torch.multiprocessing.start_processes(be, nprocs=processes, daemon=True, start_method="fork")


def store() -> Any:
    generator = np.random.default_rng(0)
    return MemoryFeatures(
        patches=MemoryArray(generator.normal(size=(IMAGES, 4, WIDTH)).astype(np.float32)),
        cls=MemoryArray(generator.normal(size=(IMAGES, WIDTH)).astype(np.float32)),
    )


def tokens() -> TokenTable:
    """One to three captions an image, of two to six words."""
    generator = np.random.default_rng(1)
    owner = np.repeat(np.arange(IMAGES), 1 + np.arange(IMAGES) % 3)
    captions = [[1, *generator.integers(3, WORDS, generator.integers(2, 7)).tolist(), 2] for _ in owner]
    return token_table(captions, owner.tolist(), range(len(owner)))


def captioner(dropout: float = 0.0) -> CaptionerTask:
    return CaptionerTask(
        untrained("patch_attention", WORDS, WIDTH, embedding_dim=5, hidden_dim=5, dropout=dropout),
        store(),
        tokens(),
        # The last batch has one image: an empty share for the second process.
        CaptionerTrainingConfig(
            phases=[CaptionerPhaseConfig(epochs=1, batch_images=4, max_length=20, objective=SMOOTHED)] * 3
        ),
        train=TRAIN,
        validation=VALIDATION,
        seed=0,
        device=CPU,
    )


def retriever(*phases: dict[str, Any], image_head: str = "linear") -> RetrieverTask:
    """A phase for each epoch."""
    torch.manual_seed(0)
    text = {"kind": "words", "vocabulary": WORDS, "word_dim": 3, "hidden_dim": 4, "dropout": 0.0}
    shared = {"embedding_dim": SPACE, "temperature": 0.1, "learn_temperature": True}
    encoder = build_dual_encoder({**shared, "image": {"feature_dim": WIDTH, "head": image_head}, "text": text})
    return RetrieverTask(
        encoder,
        [store()],
        WordTexts(tokens(), 20),
        train=TRAIN,
        validation=VALIDATION,
        phases=[RetrieverPhaseConfig(epochs=1, batch_images=4, **phase) for phase in phases],
        seed=0,
        device=CPU,
    )


MINED = {"hard_negatives": "hardest"}
STRUCTURE = RetrieverPhaseConfig(epochs=1, batch_images=11, structure=2.0)
TASKS = {
    "captioner": captioner,
    "info_nce": lambda: retriever({}, {"captions_per_image": 1}, MINED),
    # The images are frozen, and then the temperature has no gradient.
    "max_hinge": lambda: retriever({}, *[{"objective": "max_hinge"}] * 2, image_head="none"),
    "structure": lambda: feature_task(*[STRUCTURE] * 3),
}


def train(task: Any, folder: Path) -> None:
    end = trainer(task, folder, RECIPE).run()
    if distributed.is_first():
        (folder / "history.json").write_text(json.dumps(end.history))


def outcome(folder: Path) -> tuple[list[dict[str, float]], dict[str, torch.Tensor]]:
    found = read_tensors(folder / "best.safetensors")
    return json.loads((folder / "history.json").read_text()), found[0]


@pytest.mark.parametrize("name", TASKS)
def test_two_processes_learn_what_one_learns(name: str, tmp_path: Path) -> None:
    for processes in (1, 2):
        run_in(processes, lambda folder: train(TASKS[name](), folder), tmp_path / str(processes))
    alone, together = outcome(tmp_path / "1"), outcome(tmp_path / "2")
    assert len(alone[0]) == 3
    for one, two in zip(alone[0], together[0], strict=True):
        assert two == pytest.approx(one, rel=2e-5, abs=1e-6)
    assert alone[1].keys() == together[1].keys()
    for key, weights in alone[1].items():
        torch.testing.assert_close(together[1][key], weights, rtol=1e-4, atol=2e-6, msg=key)


class Stopped(CaptionerTask):
    """The second process alone is asked to stop, before its third batch."""

    seen = 0

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[Any]:
        for batch in super().batches(phase, epoch, start):
            self.seen += 1
            if self.seen == 3 and distributed.rank() == 1:
                for _ in range(2):
                    os.kill(os.getpid(), signal.SIGTERM)
            yield batch


def test_a_signal_to_one_stops_all_and_nothing_is_lost(tmp_path: Path) -> None:
    """With dropout: every process continues with the random numbers that it would have had."""

    def stopped(folder: Path) -> None:
        task = captioner(0.3)
        task.__class__ = Stopped
        with pytest.raises(Preempted, match="epoch 1, batch 3"):
            train(task, folder)

    run_in(2, lambda folder: train(captioner(0.3), folder), tmp_path / "whole")
    run_in(2, stopped, tmp_path / "parts")
    run_in(2, lambda folder: train(captioner(0.3), folder), tmp_path / "parts")
    whole, parts = outcome(tmp_path / "whole"), outcome(tmp_path / "parts")
    assert whole[0] == parts[0]
    for key, weights in whole[1].items():
        assert torch.equal(parts[1][key], weights), key
    saved = read_tensors(tmp_path / "parts/state.safetensors")
    assert not torch.equal(saved[0]["random-0.cpu"], saved[0]["random-1.cpu"])


def test_a_state_of_fewer_processes_is_not_continued(tmp_path: Path) -> None:
    """It has no random numbers for the others."""

    def work(folder: Path) -> None:
        card: dict[str, Any] = {"architecture": {}, "settings": {}, "inputs": {}, "code": ""}
        output = StringIO()
        job = TrainingJob(folder, card, 0, CPU, Reporter(stream=output))
        job.train(lambda: captioner(0.3), RECIPE, torch.float32)
        second = distributed.processes() == 2 and distributed.is_first()
        assert ("an unfinished training with processes 1 is kept" in output.getvalue()) == second

    run_in(1, work, tmp_path)
    run_in(2, work, tmp_path)
