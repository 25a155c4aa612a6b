"""Training steps: fed from memory or a store, against a plain prototype, and with the attention written out.

What is compared takes turns in one run: images with five captions each, 196 patches of 192 numbers. Stores are of
float16 and of eight bits; memory and stores are compared by the best of many short turns. The prototype trains the same
model written out: padded captions in batches of their own, each with its image's patches, and attention one time step
after another.

    python -m benchmarks.training --batches 2
"""

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.inputs import peak_mb
from benchmarks.loader import make, make_eight_bits
from tests.data_sets import token_table
from vitcapr.batches.image_batches import Batch
from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.batches.texts import PAD
from vitcapr.config.captioner import PatchAttentionConfig
from vitcapr.config.training import CaptionerPhaseConfig, CaptionerTrainingConfig
from vitcapr.encoders.devices import autocast, resolve_device, resolve_dtype
from vitcapr.formats.tokens import TokenTable
from vitcapr.models.architectures import patch_attention
from vitcapr.models.architectures.patch_attention import PatchAttentionCaptioner
from vitcapr.models.attention_scores import Scoring, patch_scores
from vitcapr.models.interface import Captioner, build_captioner
from vitcapr.store.reader import FeatureArray
from vitcapr.training.captioner_task import CaptionerTask, Step

VOCABULARY = 2500
_clock = time.perf_counter if torch.cuda.is_available() else time.process_time
"""Other programs disturb the time of the processor less."""


def captions(images: int) -> TokenTable:
    """Five random captions an image, as long as those of Flickr8k: 12 words with a spread of 4."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.normal(12, 4, images * 5).round(), 4, 33).astype(int)
    words = [[1, *generator.integers(4, VOCABULARY, length), 2] for length in lengths]
    return token_table(words, np.repeat(np.arange(images), 5).tolist(), range(images * 5))


def architecture_of(**settings: Any) -> dict[str, Any]:
    """That of a patch attention with vectors of 256 numbers, as a card has it."""
    captioner = PatchAttentionConfig(backbone="vit", embedding_dim=256, init_from_cls=False, **settings)
    return {"kind": "patch_attention", "vocabulary": VOCABULARY, "feature_dim": 192, **captioner.described()}


def task_of(
    model: Captioner, patches: FeatureArray | MemoryArray, batch_images: int, smoothing: float
) -> CaptionerTask:
    """Training on random captions of every row of ``patches``."""
    objective = {"kind": "cross_entropy", "label_smoothing": smoothing}
    model.train()
    return CaptionerTask(
        model,
        MemoryFeatures(patches=patches),  # type: ignore[arg-type]
        captions(len(patches)),
        CaptionerTrainingConfig(
            phases=[CaptionerPhaseConfig(epochs=1, batch_images=batch_images, objective=objective)]
        ),
        train=np.arange(len(patches)),
        validation=np.arange(0),
        seed=0,
        device=next(model.parameters()).device,
    )


def steps(task: CaptionerTask, optimizer: torch.optim.Optimizer, batches: Iterable[Step]) -> float:
    """Seconds that the steps and the reading of the batches take."""
    device = next(task.model.parameters()).device
    begin = _clock()
    for batch in batches:
        with autocast(device, resolve_dtype("auto", device)):
            loss, _ = task.loss(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return _clock() - begin


def plain_loss(model: PatchAttentionCaptioner, patches: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy a word of captions (C, T), each with the patches (C, P, D) of its image."""
    hidden = model.reader.lstm(model.dropout(model.reader.embedding(tokens[:, :-1])))[0]
    values = model.patch(model.dropout(patches))
    keys = model.patch_key(values)
    logits = []
    for state in hidden.unbind(1):
        weights = torch.softmax(torch.tanh(keys + model.word_key(state)[:, None]) @ model.score, dim=-1)
        context = (weights[:, None] @ values)[:, 0]
        logits.append(model.words(model.dropout(torch.cat([context, state], dim=-1))))
    return torch.nn.functional.cross_entropy(
        torch.stack(logits, 1).flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=PAD
    )


def plain_parts(batch: Batch, captions: int = 64) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The batch's captions in parts, each as a prototype would load it: padded to its own longest caption."""
    parts = []
    for chosen in torch.arange(len(batch.texts)).split(captions):
        tokens = batch.texts[chosen]
        parts.append((batch.image_index[chosen], tokens[:, : int((tokens != PAD).sum(1).max())]))
    return parts


def plain_ratio(turns: int, batch_images: int) -> float:
    """How many times faster our step is than the prototype's steps over the same captions; the best turn of each."""
    device = resolve_device("auto")
    array = np.random.default_rng(0).normal(size=(batch_images, 196, 192)).astype(np.float16)
    architecture = architecture_of(attention_dim=256, scoring="tanh")
    model = build_captioner(architecture).to(device)
    assert isinstance(model, PatchAttentionCaptioner)
    task = task_of(model, MemoryArray(array), batch_images, smoothing=0.0)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    step = next(iter(task.batches(0, 1, 0)))
    batch = step[2]
    parts = plain_parts(batch)

    def plain(index: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        return plain_loss(model, batch.features["patches"].to(device).float()[index], tokens.to(device))

    with torch.no_grad():
        model.eval()
        words = [int((tokens[:, 1:] != PAD).sum()) for _, tokens in parts]
        total = sum(float(plain(*part)) * count for part, count in zip(parts, words, strict=True))
        assert abs(total / sum(words) - float(task.loss(step)[0])) < 1e-4, "the prototype is another model"
    model.train()
    ours, theirs = [], []
    for turn in range(turns + 1):
        begin = _clock()
        for part in parts:
            with autocast(device, resolve_dtype("auto", device)):
                loss = plain(*part)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        between = _clock()
        own = steps(task, optimizer, [step])
        if turn:
            theirs.append(between - begin)
            ours.append(own)
    return min(theirs) / min(ours)


def plain_scores(
    patches: torch.Tensor, words: torch.Tensor, weight: torch.Tensor, counts: torch.Tensor, _: Scoring
) -> torch.Tensor:
    """What ``patch_scores`` gives for equation 2, written out image by image."""
    scores = []
    for keys, of_words, count in zip(patches, words, counts.tolist(), strict=True):
        real = torch.tanh(keys + of_words[:count, None]) @ weight
        scores.append(torch.nn.functional.pad(real, (0, 0, 0, len(of_words) - count)))
    return torch.stack(scores)


def attention_ratio(turns: int, batch_images: int) -> float:
    """How many times faster a training step is than with the formula of the attention written out."""
    device = resolve_device("auto")
    array = np.random.default_rng(0).normal(size=(batch_images, 196, 192)).astype(np.float16)
    architecture = architecture_of(attention_dim=256, scoring="tanh")
    task = task_of(build_captioner(architecture).to(device), MemoryArray(array), batch_images, smoothing=0.0)
    optimizer = torch.optim.Adam(task.model.parameters(), fused=True)
    batches = list(task.batches(0, 1, 0))
    seconds: list[list[float]] = [[], []]
    for turn in range(turns + 1):
        for place, form in enumerate([plain_scores, patch_scores]):
            with patch.object(patch_attention, "patch_scores", form):
                own = steps(task, optimizer, batches)
            if turn:
                seconds[place].append(own)
    return statistics.median(seconds[0]) / statistics.median(seconds[1])


def run(batches: int = 2, batch_images: int = 64, turns: int = 3) -> dict[str, float | None]:
    images = batches * batch_images
    device = resolve_device("auto")
    with tempfile.TemporaryDirectory() as folder:
        store, _ = make(Path(folder), (images, 196, 192), 64)
        array = store["patches"]
        model = build_captioner(architecture_of(attention_dim=128, scoring="tanh")).to(device)
        task = task_of(model, array, batch_images, smoothing=0.1)
        small = task_of(model, make_eight_bits(Path(folder), array), batch_images, smoothing=0.1)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        in_memory = list(task.batches(0, 1, 0))
        sources: dict[str, Callable[[], Iterable[Step]]] = {
            "memory": lambda: in_memory,
            "store": lambda: task.batches(0, 1, 0),
            "eight_bits": lambda: small.batches(0, 1, 0),
        }
        steps(task, optimizer, in_memory[:2])
        seconds = dict.fromkeys(sources, math.inf)
        for _ in range(4 * turns):
            for name, source in sources.items():
                seconds[name] = min(seconds[name], steps(task, optimizer, source()))
    return {
        **{f"images_per_second_from_{name}": round(images / value, 1) for name, value in seconds.items()},
        "store_to_memory": round(seconds["memory"] / seconds["store"], 3),
        "eight_bits_to_memory": round(seconds["memory"] / seconds["eight_bits"], 3),
        "step_to_plain_step": round(plain_ratio(turns, batch_images), 2),
        "step_to_step_with_plain_attention": round(attention_ratio(turns, batch_images), 2),
        "peak_mb": peak_mb(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="images of a batch")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    print(json.dumps(run(options.batches, options.batch, options.turns)))
