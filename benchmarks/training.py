"""Training steps fed from a store, against the same steps fed from memory, and the attention against its plain form.

Both take the same batches in turns in one run: images with five captions each, 196 patches of 192 numbers.

    python benchmarks/training.py --batches 6
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch

from benchmarks.loader import make
from vitcapr.features.loader import CaptionBatch
from vitcapr.features.precision import autocast, resolve_device, resolve_dtype
from vitcapr.features.store import FeatureArray
from vitcapr.models.attention import additive_scores
from vitcapr.models.captioners import build_captioner
from vitcapr.text.tokens import TokenTable
from vitcapr.training.captioner import CaptionerTask

VOCABULARY = 2500


class Source(dict[str, FeatureArray]):
    """Arrays by name, any row as good as another."""

    block = 1


def captions(images: int) -> TokenTable:
    """Five random captions an image, as long as those of Flickr8k: 12 words with a spread of 4."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.normal(12, 4, images * 5).round(), 4, 33).astype(int)
    words = [[1, *generator.integers(4, VOCABULARY, length), 2] for length in lengths]
    return TokenTable.build(words, np.repeat(np.arange(images), 5).tolist(), range(images * 5))


def steps(task: CaptionerTask, optimizer: torch.optim.Optimizer, batches: Iterable[CaptionBatch]) -> float:
    """Seconds that the steps take, waiting for the batches included."""
    device = next(task.model.parameters()).device
    begin = time.perf_counter()
    for batch in batches:
        with autocast(device, resolve_dtype("auto", device)):
            loss, _ = task.loss(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin


def plain_scores(patches: torch.Tensor, words: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.tanh(patches[:, None] + words[:, :, None]) @ weight


def attention_ratio(turns: int) -> float:
    """How many times faster the tiled attention is, forward and backward, than the formula written out."""
    shapes = [(16, 196, 128), (16, 60, 128), (128,)]
    tensors = [torch.randn(shape).requires_grad_() for shape in shapes]
    counts = torch.full((16,), 60)
    forms: list[Callable[[], torch.Tensor]] = [
        lambda: plain_scores(*tensors),
        lambda: additive_scores(tensors[0], tensors[1], tensors[2], counts, "tanh"),
    ]
    seconds: list[list[float]] = [[], []]
    for turn in range(turns + 1):
        for place, form in enumerate(forms):
            begin = time.perf_counter()
            form().sum().backward()
            if turn:
                seconds[place].append(time.perf_counter() - begin)
    return statistics.median(seconds[0]) / statistics.median(seconds[1])


def run(batches: int = 6, batch_images: int = 64, turns: int = 3) -> dict[str, float]:
    images = batches * batch_images
    device = resolve_device("auto")
    with tempfile.TemporaryDirectory() as folder:
        array, _ = make(Path(folder), (images, 196, 192), 64)
        model = build_captioner(
            {"kind": "patch_attention", "vocabulary": VOCABULARY, "feature_dim": 192, "attention_dim": 128}
        ).to(device)
        model.train()
        task = CaptionerTask(
            model,
            Source(patches=array),  # type: ignore[arg-type]
            captions(images),
            train=np.arange(images),
            validation=np.arange(0),
            batch_images=[batch_images],
            max_length=[35],
            label_smoothing=0.1,
            seed=0,
            device=device,
        )
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        in_memory = list(task.batches(0, 1, 0))
        steps(task, optimizer, in_memory[:2])
        stored, remembered = [], []
        for _ in range(turns):
            stored.append(images / steps(task, optimizer, task.batches(0, 1, 0)))
            remembered.append(images / steps(task, optimizer, in_memory))
    return {
        "images_per_second_from_store": round(statistics.median(stored), 1),
        "images_per_second_from_memory": round(statistics.median(remembered), 1),
        "store_to_memory": round(statistics.median(stored) / statistics.median(remembered), 3),
        "tiled_to_plain_attention": round(attention_ratio(turns), 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=6)
    print(json.dumps(run(parser.parse_args().batches)))
