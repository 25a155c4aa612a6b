"""Captions a second: greedy, beam search, and beam search as the tests' blackboard version does it.

A captioner of the size of the Flickr8k experiments with random weights: 196 patches of 192 numbers, 3,000 words,
captions of about ten words. The versions run one after another in one process; the ratio is of that run.

    python -m benchmarks.decoding --images 256
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.decoding.reference_beam import reference_beam_search
from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.greedy import greedy
from vitcapr.models.captioners import PatchAttentionCaptioner
from vitcapr.models.interface import Memory, State, Step

VOCABULARY, PATCHES, WIDTH, BATCH = 3000, 196, 192, 64
PAD, START, END, UNKNOWN = 0, 1, 2, 3
TYPICAL_LENGTH = 10


class EndingCaptioner(PatchAttentionCaptioner):
    """Random weights never end a caption at a natural length, so the end becomes likelier word by word."""

    def initial_state(self, memory: Memory) -> State:
        state = super().initial_state(memory)
        return {**state, "words": torch.zeros(state["hidden"].shape[:2])}

    def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
        step = super().step(memory, state, tokens)
        step.logits[..., END] += 3 * (state["words"] - TYPICAL_LENGTH) + step.logits.amax(-1)
        return step._replace(state={**step.state, "words": state["words"] + 1})


def captioner() -> EndingCaptioner:
    """Weights drawn large, so that the choices of words are about as sharp as those of a trained captioner."""
    torch.manual_seed(0)
    model = EndingCaptioner(VOCABULARY, WIDTH).eval()
    with torch.no_grad():
        model.words.weight.mul_(12)
        model.reader.embedding.weight.mul_(2)
    return model


def seconds_each(captions: Callable[[], int]) -> tuple[float, float]:
    """Wall-clock and processor seconds for one caption."""
    wall, processor = time.perf_counter(), time.process_time()
    written = captions()
    return (time.perf_counter() - wall) / written, (time.process_time() - processor) / written


@torch.inference_mode()
def run(images: int = 128, reference_images: int = 4) -> dict[str, Any]:
    """The report; ``beam_over_reference`` is how many times faster beam 5 is than the blackboard version."""
    model = captioner()
    draw = torch.Generator().manual_seed(1)
    patches = torch.randn(images, PATCHES, WIDTH, generator=draw)
    common: dict[str, Any] = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN], "max_length": 35}

    def in_batches(search: Callable[[Memory], list[Any]]) -> Callable[[], int]:
        return lambda: sum(len(search(model.encode({"patches": part}))) for part in patches.split(BATCH))

    def reference() -> int:
        memory = model.encode({"patches": patches[:reference_images]})
        return len(reference_beam_search(model, memory, **common, beam_size=5))

    forms = {
        "greedy": in_batches(lambda memory: greedy(model, memory, **common)),
        "beam_5": in_batches(lambda memory: beam_search(model, memory, **common, beam_size=5)),
        "beam_5_normalised": in_batches(
            lambda memory: beam_search(model, memory, **common, beam_size=5, length_penalty=0.7)
        ),
        "reference_beam_5": reference,
    }
    greedy(model, model.encode({"patches": patches[:BATCH]}), **common)
    times = {name: seconds_each(form) for name, form in forms.items()}
    report: dict[str, Any] = {"images": images, "threads": torch.get_num_threads()}
    for name, (wall, processor) in times.items():
        report[name] = {"captions_per_second": 1 / wall, "processor_ms_per_caption": 1000 * processor}
    report["beam_over_reference"] = times["reference_beam_5"][0] / times["beam_5"][0]
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=int, default=128)
    print(json.dumps(run(parser.parse_args().images)))
