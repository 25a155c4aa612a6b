"""A GPU against the CPU, and the loops under ``torch.cuda.set_sync_debug_mode``: ``make test-gpu``."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from benchmarks.decoding import END, LONGEST, PAD, PATCHES, START, UNKNOWN, WIDTH, captioner
from benchmarks.inputs import write_vit
from benchmarks.training import architecture_of, captions
from vitcapr.batches.loader import Batch
from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.config.captioner import CaptionerPhaseConfig, CaptionerTrainingConfig
from vitcapr.data.images import ImageSource
from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.stepwise import greedy
from vitcapr.encoders.image_encoders import load_image_encoder
from vitcapr.encoders.preprocess import read_preprocessing
from vitcapr.errors import Preempted
from vitcapr.formats.manifest import read_manifest, write_manifest
from vitcapr.models.captioners import build_captioner
from vitcapr.progress import Reporter
from vitcapr.store import fill
from vitcapr.store.image_rows import ImageFeatures, Pixels
from vitcapr.store.reader import open_features
from vitcapr.store.rows import Rows
from vitcapr.store.seal import seal, write_part
from vitcapr.training import distributed
from vitcapr.training.captioner import CaptionerTask
from vitcapr.training.distributed import joined
from vitcapr.training.loop import Position, Trainer

GPU = torch.device("cuda")
CPU = torch.device("cpu")
SMALL_VIT = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256}
IMAGES = 40
AT_THE_END = 10
"""Times that a search may wait once all captions have ended."""

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU here"),
]


@contextmanager
def no_waits() -> Iterator[None]:
    """Inside, an operation that makes the thread wait for the GPU is an error."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photographs")
    generator, rows = np.random.default_rng(0), []
    for number in range(IMAGES):
        smooth = Image.fromarray(generator.integers(0, 256, (9, 12, 3), dtype=np.uint8))
        path = folder / f"{number}.jpg"
        smooth.resize((640, 480), Image.Resampling.BICUBIC).save(path)
        rows.append((str(number), path.name, "train", 640, 480, hashlib.sha256(path.read_bytes()).hexdigest()))
    images = pd.DataFrame(rows, columns=["image_id", "path", "split", "width", "height", "sha256"])
    texts = images[["image_id", "split"]].assign(caption_id=images["image_id"], language="en", text="a")
    return write_manifest(folder, dataset="smooth", image_root=folder, images=images, captions=texts, rejected=[])


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_vit(tmp_path_factory.mktemp("vit"), SMALL_VIT)


def extract(folder: Path, manifest: Path, vit: Path, device: torch.device, dtype: torch.dtype) -> dict[str, np.ndarray]:
    """The sealed features of the photographs."""
    data, (preprocessing, _) = read_manifest(manifest), read_preprocessing(vit, (224, 224))
    backbone = load_image_encoder(vit, size=preprocessing.size, dtype=dtype, device=device)
    with ImageSource(data.image_root) as source:
        pixels = Pixels(data.image_table, source, preprocessing)
        plan = fill.StorePlan(folder, Rows.of_images(data), {"test": "gpu"}, 16, code="")
        features = ImageFeatures(pixels, preprocessing, backbone, "float32")
        chunks, report = range(plan.chunks), Reporter(stream=StringIO())
        writer = fill.fill(plan, chunks, lambda: features, batch=8, reuse=False, report=report)
    write_part(folder / "part.json", plan.fingerprint, writer, chunks)
    seal([folder / "part.json"], folder, plan.rows.ids, folder / "manifest.json")
    store = open_features(folder / "manifest.json")
    return {name: store[name].gather(np.arange(IMAGES)) for name in store}


def test_features_are_those_of_the_cpu_and_nothing_waits(
    tmp_path: Path, photographs: Path, vit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = extract(tmp_path / "cpu", photographs, vit, CPU, torch.float32)
    compute = fill._compute

    def watched(*arguments: Any) -> None:
        with no_waits():
            compute(*arguments)

    monkeypatch.setattr(fill, "_compute", watched)
    for dtype, most in ((torch.bfloat16, 1e-2), (torch.float32, 1e-3)):
        features = extract(tmp_path / str(dtype), photographs, vit, GPU, dtype)
        for name, array in expected.items():
            assert np.linalg.norm(features[name] - array) <= most * np.linalg.norm(array), (name, dtype)


@pytest.mark.parametrize("search", [greedy, partial(beam_search, beam_size=5)], ids=["greedy", "beam"])
@torch.inference_mode()
def test_captions_are_those_of_the_cpu_and_a_step_waits_once(search: Callable[..., Any]) -> None:
    patches = torch.randn(32, PATCHES, WIDTH, generator=torch.Generator().manual_seed(1))
    limits: dict[str, Any] = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN], "max_length": LONGEST}
    model, steps = captioner(), list[int]()
    expected = search(model, model.encode({"patches": patches}), **limits, block_ngram=2)
    model.to(GPU)
    step = model.step
    model.step = lambda *given: (steps.append(1), step(*given))[1]  # type: ignore[method-assign, assignment]
    memory = model.encode({"patches": patches.to(GPU)})
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as waits:
            warnings.simplefilter("always")
            captions_of_gpu = search(model, memory, **limits, block_ngram=2)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert [words(each) for each in captions_of_gpu] == [words(each) for each in expected]
    assert len(steps) > 8
    assert len([wait for wait in waits if "synchroniz" in str(wait.message)]) <= len(steps) + AT_THE_END


def words(caption: Any) -> list[int]:
    return list((caption[0] if isinstance(caption, list) else caption).tokens)


class Task(CaptionerTask):
    """A captioner on random features; a signal may come before a chosen batch."""

    def __init__(self, device: torch.device, stop_before: int | None = None) -> None:
        torch.manual_seed(0)
        generator = np.random.default_rng(0)
        store = MemoryFeatures(patches=MemoryArray(generator.normal(size=(IMAGES, 49, 192)).astype(np.float16)))
        phase = CaptionerPhaseConfig(epochs=2, batch_images=4, learning_rate=1e-3)
        super().__init__(
            build_captioner(architecture_of(attention_dim=64, scoring="tanh", dropout=0.0)),
            store,  # type: ignore[arg-type]
            captions(IMAGES),
            CaptionerTrainingConfig(phases=[phase]),
            train=np.arange(32),
            validation=np.arange(32, IMAGES),
            seed=0,
            device=device,
        )
        self.stop_before, self.seen = stop_before, 0

    def batches(self, phase: int, epoch: int, start: int) -> Iterator[Batch]:
        for batch in super().batches(phase, epoch, start):
            if self.seen == self.stop_before:
                os.kill(os.getpid(), signal.SIGTERM)
            self.seen += 1
            yield batch


def train(folder: Path, task: Task, device: torch.device) -> Position:
    recipe = CaptionerTrainingConfig(phases=[CaptionerPhaseConfig(epochs=2, batch_images=4)], ema_decay=0.9)
    return Trainer(
        task,
        recipe,
        device=device,
        dtype=torch.float32,
        folder=folder,
        identity="same",
        reporter=Reporter(stream=StringIO()),
    ).run()


def losses(position: Position) -> list[float]:
    return [row[name] for row in position.history for name in ("train_loss", "validation_loss")]


def test_a_training_is_that_of_the_cpu_and_its_steps_do_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = losses(train(tmp_path / "cpu", Task(CPU), CPU))
    step, watched = Trainer._step, []

    def watch(trainer: Trainer[Any], *arguments: Any) -> None:
        if not watched:  # Libraries that are loaded by the first step may wait.
            step(trainer, *arguments)
        else:
            with no_waits():
                step(trainer, *arguments)
        watched.append(1)

    monkeypatch.setattr(Trainer, "_step", watch)
    assert losses(train(tmp_path / "gpu", Task(GPU), GPU)) == pytest.approx(expected, rel=1e-3)
    assert len(watched) == 16


def test_stopped_and_continued_is_the_whole_training(tmp_path: Path) -> None:
    whole = losses(train(tmp_path / "whole", Task(GPU), GPU))
    with pytest.raises(Preempted):
        train(tmp_path / "parts", Task(GPU, stop_before=3), GPU)
    assert losses(train(tmp_path / "parts", Task(GPU), GPU)) == pytest.approx(whole, rel=1e-4)


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU here; two processes need two")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", __file__]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([*command, str(tmp_path / "two")], check=True, env=environment, timeout=200)
    expected = losses(train(tmp_path / "one", Task(GPU), GPU))
    assert json.loads((tmp_path / "two" / "losses.json").read_text()) == pytest.approx(expected, rel=1e-3)


if __name__ == "__main__":
    with joined(torch.device("cuda")):
        found = losses(train(Path(sys.argv[1]), Task(GPU), GPU))
        if distributed.is_first():
            (Path(sys.argv[1]) / "losses.json").write_text(json.dumps(found))
