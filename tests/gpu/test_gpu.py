"""A GPU against the CPU, and the loops under ``torch.cuda.set_sync_debug_mode``: ``make test-gpu``."""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks.decoding import END, LONGEST, PAD, PATCHES, START, UNKNOWN, WIDTH, captioner
from benchmarks.inputs import write_vit
from benchmarks.training import architecture_of, captions
from tests.data_sets import write_data_set
from tests.training.trained import StopsBefore, trainer
from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.config.training import CaptionerPhaseConfig, CaptionerTrainingConfig
from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.stepwise import greedy
from vitcapr.errors import Preempted
from vitcapr.models.interface import build_captioner
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.extract import extract
from vitcapr.stages.seal import seal
from vitcapr.store import fill
from vitcapr.store.reader import open_features
from vitcapr.training import distributed
from vitcapr.training.captioner_task import CaptionerTask
from vitcapr.training.distributed import joined
from vitcapr.training.loop import Position, Trainer

GPU = "cuda"
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
    generator = np.random.default_rng(0)
    for number in range(IMAGES):
        smooth = Image.fromarray(generator.integers(0, 256, (9, 12, 3), dtype=np.uint8))
        smooth.resize((640, 480), Image.Resampling.BICUBIC).save(folder / f"{number}.jpg")
    names = [str(number) for number in range(IMAGES)]
    captions = [(name, "en", "a") for name in names]
    return write_data_set(folder, dict.fromkeys(names, "train"), captions, files="{}.jpg".format)


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_vit(tmp_path_factory.mktemp("vit"), SMALL_VIT)


def extracted(folder: Path, manifest: Path, vit: Path, device: str, dtype: str) -> dict[str, np.ndarray]:
    """The features of the photographs."""
    stores, part, sealed = folder / "stores", folder / "part.json", folder / "manifest.json"
    backbone = {"source": str(vit), "dtype": dtype, "store_dtype": "float32"}
    settings = {"backbone": backbone, "features": {"chunk": 16, "batch": 8}}
    run_stage(extract, manifest=manifest, stores=str(stores), part=part, settings=settings, device=device)
    run_stage(seal, parts=[part], manifest=manifest, stores=str(stores), sealed=sealed)
    store = open_features(sealed)
    return {name: store[name].gather(np.arange(IMAGES)) for name in store}


def test_features_are_those_of_the_cpu_and_nothing_waits(
    tmp_path: Path, photographs: Path, vit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = extracted(tmp_path / "cpu", photographs, vit, "cpu", "float32")
    compute = fill._compute

    def watched(*arguments: Any) -> None:
        with no_waits():
            compute(*arguments)

    monkeypatch.setattr(fill, "_compute", watched)
    for dtype, most in (("bfloat16", 1e-2), ("float32", 1e-3)):
        features = extracted(tmp_path / dtype, photographs, vit, GPU, dtype)
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


class Task(StopsBefore, CaptionerTask):
    pass


def train(folder: Path, device: str, stop_before: int | None = None) -> Position:
    """A captioner on random features."""
    torch.manual_seed(0)
    generator = np.random.default_rng(0)
    phase = CaptionerPhaseConfig(epochs=2, batch_images=4, learning_rate=1e-3)
    recipe = CaptionerTrainingConfig(phases=[phase], ema_decay=0.9)
    task = Task(
        build_captioner(architecture_of(attention_dim=64, scoring="tanh", dropout=0.0)),
        MemoryFeatures(patches=MemoryArray(generator.normal(size=(IMAGES, 49, 192)).astype(np.float16))),  # type: ignore[arg-type]
        captions(IMAGES),
        recipe,
        train=np.arange(32),
        validation=np.arange(32, IMAGES),
        seed=0,
        device=torch.device(device),
    )
    task.stop_before = stop_before
    return trainer(task, folder, recipe, device=device).run()


def losses(position: Position) -> list[float]:
    return [row[name] for row in position.history for name in ("train_loss", "validation_loss")]


def test_a_training_is_that_of_the_cpu_and_its_steps_do_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = losses(train(tmp_path / "cpu", "cpu"))
    step, watched = Trainer._step, []

    def watch(trainer: Trainer[Any], *arguments: Any) -> None:
        if not watched:  # Libraries that are loaded by the first step may wait.
            step(trainer, *arguments)
        else:
            with no_waits():
                step(trainer, *arguments)
        watched.append(1)

    monkeypatch.setattr(Trainer, "_step", watch)
    assert losses(train(tmp_path / "gpu", GPU)) == pytest.approx(expected, rel=1e-3)
    assert len(watched) == 16


def test_stopped_and_continued_is_the_whole_training(tmp_path: Path) -> None:
    whole = losses(train(tmp_path / "whole", GPU))
    with pytest.raises(Preempted):
        train(tmp_path / "parts", GPU, stop_before=3)
    assert losses(train(tmp_path / "parts", GPU)) == pytest.approx(whole, rel=1e-4)


def test_two_processes_train_as_one(tmp_path: Path) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU here; two processes need two")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", __file__]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([*command, str(tmp_path / "two")], check=True, env=environment, timeout=200)
    expected = losses(train(tmp_path / "one", GPU))
    assert json.loads((tmp_path / "two" / "losses.json").read_text()) == pytest.approx(expected, rel=1e-3)


if __name__ == "__main__":
    with joined(torch.device("cuda")):
        found = losses(train(Path(sys.argv[1]), GPU))
        if distributed.is_first():
            (Path(sys.argv[1]) / "losses.json").write_text(json.dumps(found))
