"""Other programs at the same task on the same numbers, in one run: ``make bench-peers``.

- CLIP_benchmark's ``zeroshot_retrieval.evaluate`` against our ranks: recalls of 1, 5 and 10 in both directions; the
  recalls must be equal.
- A WebDataset of the same features against our store: batches of 64 images in random order. WebDataset draws from a
  buffer of 1,000 images that follow one another; a store draws from all.

All have one thread. Prints JSON with the versions: processor seconds of the best turn.

    pip install --no-deps --target .peers clip-benchmark==1.6.2 webdataset==1.0.2 braceexpand==0.1.7
    PYTHONPATH=.peers python -m benchmarks.peers
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
import webdataset
from clip_benchmark.metrics import zeroshot_retrieval
from torch import Tensor

from benchmarks.loader import make
from benchmarks.retrieval import embeddings
from vitcapr.features.store.reader import FeatureArray
from vitcapr.metrics.ranks import Truth, rank_matches
from vitcapr.metrics.retrieval import recall

BATCH, BUFFER = 64, 1000


def processor_seconds(call: Callable[[], Any], turns: int) -> float:
    """Of the best turn, after one that warms up."""
    seconds = []
    for _ in range(turns + 1):
        begin = time.process_time()
        call()
        seconds.append(time.process_time() - begin)
    return round(min(seconds[1:]), 3)


class Embedded:
    """What CLIP_benchmark takes for a model: the images are their embeddings, the words are numbers of captions."""

    def __init__(self, captions: Tensor) -> None:
        self._captions = captions

    def encode_image(self, images: Tensor) -> Tensor:
        return images

    def encode_text(self, numbers: Tensor) -> Tensor:
        return self._captions[numbers]


def retrieval(images: int, captions_each: int, turns: int) -> dict[str, Any]:
    left, right, owner = embeddings(images, captions_each, noise=0.3)
    numbers = torch.arange(len(right)).view(images, captions_each)
    batches = [
        (torch.from_numpy(left[at : at + BATCH]), numbers[at : at + BATCH].tolist()) for at in range(0, images, BATCH)
    ]
    model, cutoffs = Embedded(torch.from_numpy(right)), [1, 5, 10]

    def theirs() -> dict[str, float]:
        return dict(zeroshot_retrieval.evaluate(model, batches, torch.tensor, "cpu", False, cutoffs))

    def ours() -> dict[str, float]:
        measures = recall(rank_matches(left, right, owner), Truth.of(owner, images))
        return {name: float(measure.value) for name, measure in measures.items()}

    found, expected = ours(), theirs()
    for cutoff in cutoffs:
        for ways, name in (("i2t", "text"), ("t2i", "image")):
            value = expected[f"{name}_retrieval_recall@{cutoff}"]
            assert abs(found[f"{ways}_recall_{cutoff}"] - value) < 1e-6, (ways, cutoff)
    return {
        "images": images,
        "captions": len(right),
        "clip_benchmark": processor_seconds(theirs, turns),
        "vitcapr": processor_seconds(ours, turns),
    }


def written(folder: Path, array: np.ndarray) -> str:
    """The rows as a WebDataset of 1,000 images a shard. Returns its URL."""
    with webdataset.ShardWriter(str(folder / "%06d.tar"), maxcount=1000, verbose=0) as shards:
        for number, row in enumerate(array):
            shards.write({"__key__": f"{number:08d}", "npy": row})
    return str(folder / f"{{000000..{(len(array) - 1) // 1000:06d}}}.tar")


def loading(images: int, patches: int, width: int, turns: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        store, plain = make(Path(folder), (images, patches, width), 64)
        shards = Path(folder) / "shards"
        shards.mkdir()
        url = written(shards, plain)
        theirs = webdataset.WebDataset(url, shardshuffle=False).shuffle(BUFFER).decode().to_tuple("npy").batched(BATCH)
        result = {
            "images": images,
            "bytes_an_image": store.row_bytes,
            "webdataset": processor_seconds(lambda: sum(len(batch) for (batch,) in theirs), turns),
            "vitcapr": processor_seconds(lambda: sum(len(batch) for batch in random_batches(store)), turns),
        }
        store.close()
    return result


def random_batches(store: FeatureArray) -> Iterator[np.ndarray]:
    order = np.random.default_rng(0).permutation(len(store))
    return (store.gather(order[at : at + BATCH]) for at in range(0, len(store), BATCH))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    turns = parser.parse_args().turns
    torch.set_num_threads(1)
    report = {
        "versions": {name: version(name) for name in ("clip_benchmark", "webdataset", "torch", "numpy")},
        "recalls": retrieval(1000, 5, turns),
        "random_batches": loading(2048, 196, 192, turns),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
