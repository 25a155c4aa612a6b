"""Ranks of retrieval against the bare matrix product, and the memory that they take.

The product is of the same blocks into the same buffer; both run in turns, and the ratio is of the medians. Embeddings
have 256 dimensions; five captions lie around each image. Prints JSON.

    python -m benchmarks.retrieval --images 5000 --captions-each 5
    python -m benchmarks.retrieval --images 50000 --captions-each 1 --turns 1
"""

import argparse
import json
import resource
import statistics
import time
from typing import Any

import numpy as np

from vitcapr.metrics import ranks
from vitcapr.metrics.score_blocks import ScoreBlock

DIM = 256


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


def bare_product(left: np.ndarray, right: np.ndarray) -> None:
    """The matrix product of the blocks that the ranks are counted in, and nothing else."""
    width, height = ranks._CAPTIONS_HELD, ranks._PANEL
    buffer = ScoreBlock.buffer(height, min(width, len(right)))
    for start in range(0, len(right), width):
        texts = right[start : start + width]
        for row in range(0, len(left), height):
            ScoreBlock.compute(left[row : row + height], texts, np.float32(0), buffer)


def run(images: int, captions_each: int, noise: float, turns: int) -> dict[str, Any]:
    left, right, owner = embeddings(images, captions_each, noise)
    seconds: dict[str, list[float]] = {"bare_product": [], "ranks": []}
    bare_product(left[: ranks._PANEL], right)
    for _ in range(turns):
        begin = time.perf_counter()
        bare_product(left, right)
        middle = time.perf_counter()
        found = ranks.rank_matches(left, right, owner)
        seconds["bare_product"].append(round(middle - begin, 3))
        seconds["ranks"].append(round(time.perf_counter() - middle, 3))
    return {
        "benchmark": "retrieval",
        "scores": [len(left), len(right)],
        "seconds": seconds,
        "ratio": round(statistics.median(seconds["ranks"]) / statistics.median(seconds["bare_product"]), 2),
        "target": 1.5,
        "peak_memory_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "i2t_recall_1": round(float((found.i2t == 1).mean()), 3),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--captions-each", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.35, help="0.35 gives Recall@1 of 44 %%, 100 gives chance")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    print(json.dumps(run(options.images, options.captions_each, options.noise, options.turns), indent=2))
