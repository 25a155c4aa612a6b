"""Random batches from a sealed store, against the same rows from one plain ``.npy`` memory map and from zarr's oindex.

The store is read in float16 and in eight bits. Stores and memory map take turns batch by batch in random order, each
with another batch, so that whatever else the machine does hits all and none finds its rows in the cache of another. All
are read once beforehand. Prints JSON: images a second of the median batch, the ratios, and the CPU time of an image in
microseconds, over all threads, which other programs disturb less.

    python -m benchmarks.loader --images 2048 --patches 196 --channels 768
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import zarr

from vitcapr.formats.int8 import quantise
from vitcapr.store.layout import ArrayLayout, chunk_path
from vitcapr.store.reader import FeatureArray, QuantisedArray
from vitcapr.store.writer import zarr_metadata


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
    (group / "zarr.json").write_bytes(zarr_metadata({group.name: layout}, {})[f"{group.name}/zarr.json"])
    plain.flush()
    return FeatureArray(group, layout), np.load(folder / "plain.npy", mmap_mode="r")


def make_eight_bits(folder: Path, array: FeatureArray) -> FeatureArray:
    """The same numbers as an array of int8 and its scales."""
    parts = {}
    for name, shape, dtype in (("int8", array.shape, "int8"), ("scale", array.shape[::2], "float16")):
        parts[name] = FeatureArray(folder / name, ArrayLayout.for_rows("image", shape, array.chunk, dtype))
    for index in range(array.chunks):
        rows = np.arange(index * array.chunk, min((index + 1) * array.chunk, len(array)))
        for name, values in zip(parts, quantise(torch.from_numpy(array.gather(rows))), strict=True):
            block = np.zeros((array.chunk, *values.shape[1:]), values.numpy().dtype)
            block[: len(rows)] = values.numpy()
            path = parts[name].chunk_path(index)
            path.parent.mkdir(parents=True)
            block.tofile(path)
    return QuantisedArray(parts["int8"], parts["scale"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2048)
    parser.add_argument("--patches", type=int, default=196)
    parser.add_argument("--channels", type=int, default=768)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--turns", type=int, default=10, help="times that every image is read")
    options = parser.parse_args()
    shape = (options.images, options.patches, options.channels)
    with tempfile.TemporaryDirectory() as folder:
        array, plain = make(Path(folder), shape, options.chunk)
        small = make_eight_bits(Path(folder), array)
        ordinary = zarr.open_array(Path(folder) / "patches", mode="r")
        every = [np.arange(at, min(at + options.batch, len(array))) for at in range(0, len(array), options.batch)]
        for batch in every:
            np.testing.assert_array_equal(array.gather(batch).view(np.uint16), plain[batch].view(np.uint16))
            small.gather(batch)
        draw = np.random.default_rng(1)
        readers: dict[str, Callable[[np.ndarray], object]] = {
            "store": array.gather,
            "eight_bits": small.gather,
            "memory_map": plain.__getitem__,
        }
        seconds: dict[str, list[float]] = {name: [] for name in [*readers, "zarr_oindex"]}
        busy: dict[str, list[float]] = {name: [] for name in seconds}

        def read(name: str, reader: Callable[[np.ndarray], object]) -> None:
            batch = draw.integers(0, options.images, options.batch)
            start, begun = time.perf_counter(), time.process_time()
            reader(batch)
            seconds[name].append(time.perf_counter() - start)
            busy[name].append(time.process_time() - begun)

        for _ in range(options.turns * len(every)):
            for name in draw.permutation(list(readers)).tolist():
                read(name, readers[name])
        for _ in range(3):
            read("zarr_oindex", ordinary.oindex.__getitem__)
        array.close()
        small.close()
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    result = {
        "benchmark": "loader",
        "shape": list(shape),
        "images_per_second": {name: round(options.batch / value, 1) for name, value in medians.items()},
        "cpu_microseconds": {
            name: round(statistics.median(values) / options.batch * 1e6, 1) for name, values in busy.items()
        },
        "ratio": round(medians["memory_map"] / medians["store"], 3),
        "ratio_of_eight_bits": round(medians["memory_map"] / medians["eight_bits"], 3),
        "ratio_to_oindex": round(medians["zarr_oindex"] / medians["store"], 1),
        "target": 0.9,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
