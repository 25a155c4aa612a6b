"""Ranks of retrieval against the bare matrix product in float32, and the memory that they take.

The product is ``images @ captions.T`` as anyone writes it, where a GiB holds it. Both run in turns; the ratio is the
median over the turns, and beside it that of the fastest turns, in processor seconds. Embeddings have 256 dimensions;
five captions lie around each image. Prints JSON.

    python -m benchmarks.retrieval --images 5000 --captions-each 5
    python -m benchmarks.retrieval --images 50000 --captions-each 1 --turns 1
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from vitcapr.metrics.ranks import rank_matches

DIM = 256
WHOLE = 2**30
"""Bytes that the product may take."""


def embeddings(images: int, captions_each: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(N, E), (M, E) of unit length in float32, and the image of each caption."""
    random = np.random.default_rng(0)
    owner = np.repeat(np.arange(images), captions_each)
    left = random.standard_normal((images, DIM), dtype=np.float32)
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    right = noise * random.standard_normal((len(owner), DIM), dtype=np.float32)
    right += left[owner]
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    return left, right, owner


def product(left: np.ndarray, right: np.ndarray) -> None:
    """All scores at once."""
    np.matmul(left, right.T)


def run(images: int, captions_each: int, noise: float, turns: int) -> dict[str, Any]:
    left, right, owner = embeddings(images, captions_each, noise)
    compared: dict[str, Callable[[], Any]] = {"ranks": lambda: rank_matches(left, right, owner)}
    if 4 * len(left) * len(right) <= WHOLE:
        compared["product"] = lambda: product(left, right)
    product(left[:1024], right)
    seconds: dict[str, list[float]] = {name: [] for name in compared}
    results: dict[str, Any] = {}
    for _ in range(turns):
        for name, call in compared.items():
            begin = time.process_time()
            results[name] = call()
            seconds[name].append(time.process_time() - begin)
    report = {
        "benchmark": "retrieval",
        "scores": [len(left), len(right)],
        "seconds": {name: [round(value, 3) for value in values] for name, values in seconds.items()},
        "peak_memory_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "i2t_recall_1": round(float((results["ranks"].i2t == 1).mean()), 3),
    }
    if "product" in seconds:
        report["ratio"] = round(float(np.median(np.divide(seconds["ranks"], seconds["product"]))), 2)
        report["ratio_of_the_fastest"] = round(min(seconds["ranks"]) / min(seconds["product"]), 2)
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--captions-each", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.35, help="0.35 gives Recall@1 of 44 %%, 100 gives chance")
    parser.add_argument("--turns", type=int, default=9)
    options = parser.parse_args()
    print(json.dumps(run(options.images, options.captions_each, options.noise, options.turns), indent=2))
