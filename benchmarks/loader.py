"""Random batches from a sealed store, against the same rows from one plain ``.npy`` memory map and from zarr's oindex.

All read the same rows in turns in one run, warm. Prints JSON: images a second of each turn and ratios of the medians.

    python benchmarks/loader.py --images 2048 --patches 196 --channels 768
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import zarr

from vitcapr.features.layout import ArrayLayout, chunk_path
from vitcapr.features.store import FeatureArray


def make(folder: Path, shape: tuple[int, int, int], chunk: int) -> tuple[FeatureArray, np.ndarray]:
    """The same random numbers as an array of a store and as a memory map."""
    layout = ArrayLayout(shape, chunk, "float16", ("image", "patch", "channel"))
    group = folder / "patches"
    plain = np.lib.format.open_memmap(folder / "plain.npy", mode="w+", dtype=np.float16, shape=shape)
    generator = np.random.default_rng(0)
    for start in range(0, shape[0], chunk):
        block = np.zeros((chunk, *shape[1:]), np.float16)
        count = min(chunk, shape[0] - start)
        block[:count] = generator.integers(-9, 9, (count, *shape[1:]), dtype=np.int8)
        path = chunk_path(group, start // chunk, 3)
        path.parent.mkdir(parents=True)
        block.tofile(path)
        plain[start : start + count] = block[:count]
    (group / "zarr.json").write_text(json.dumps(layout.metadata()))
    plain.flush()
    return FeatureArray(group, shape, chunk, np.dtype("<f2")), np.load(folder / "plain.npy", mmap_mode="r")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2048)
    parser.add_argument("--patches", type=int, default=196)
    parser.add_argument("--channels", type=int, default=768)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    shape = (options.images, options.patches, options.channels)
    with tempfile.TemporaryDirectory() as folder:
        array, plain = make(Path(folder), shape, options.chunk)
        ordinary = zarr.open_array(Path(folder) / "patches", mode="r")
        rows = np.random.default_rng(1).permutation(options.images)
        batches = [rows[start : start + options.batch] for start in range(0, len(rows), options.batch)]
        for batch in batches[:2]:
            np.testing.assert_array_equal(array.gather(batch), plain[batch])

        def rate(read: Callable[[np.ndarray], object], some: list[np.ndarray]) -> float:
            start = time.perf_counter()
            for batch in some:
                read(batch)
            return round(sum(map(len, some)) / (time.perf_counter() - start), 1)

        turns: dict[str, list[float]] = {"store": [], "memory_map": [], "zarr_oindex": []}
        for _ in range(options.turns):
            turns["store"].append(rate(array.gather, batches))
            turns["memory_map"].append(rate(lambda batch: plain[batch], batches))
            turns["zarr_oindex"].append(rate(lambda batch: ordinary.oindex[batch], batches[:2]))
        array.close()
    medians = {name: statistics.median(values) for name, values in turns.items()}
    result = {
        "benchmark": "loader",
        "shape": list(shape),
        "images_per_second": turns,
        "ratio": round(medians["store"] / medians["memory_map"], 3),
        "ratio_to_oindex": round(medians["store"] / medians["zarr_oindex"], 1),
        "target": 1.0,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
