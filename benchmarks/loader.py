"""Random batches from a sealed store, against the same rows from one plain ``.npy`` memory map and from zarr's oindex;
and shuffled epochs of :mod:`vitcapr.torch`, against a ``DataLoader`` over the memory map, with 0 and 2 workers.

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
from functools import partial
from pathlib import Path

import numpy as np
import torch
import zarr
from torch.utils.data import DataLoader, Dataset

from vitcapr.formats.int8 import quantise
from vitcapr.store.layout import ArrayLayout
from vitcapr.store.reader import FeatureArray, FeatureStore, QuantisedArray, open_features
from vitcapr.store.sealing import write_sealed
from vitcapr.store.writer import StoreWriter, store_folder
from vitcapr.torch import FeatureBatches, FeatureDataset


def make(folder: Path, shape: tuple[int, int, int], chunk: int) -> tuple[FeatureStore, np.ndarray]:
    """The same random numbers as a sealed store and as a memory map."""
    layout = ArrayLayout(shape, chunk, "float16", ("image", "patch", "channel"))
    fingerprint = "c" * 64
    writer = StoreWriter(store_folder(folder / "stores", fingerprint), {"patches": layout})
    writer.begin({"fingerprint": fingerprint, "imported": {"kind": "benchmark"}, "grid": [1, shape[1]]})
    plain = np.lib.format.open_memmap(folder / "plain.npy", mode="w+", dtype=np.float16, shape=shape)
    generator = np.random.default_rng(0)
    for start in range(0, shape[0], chunk):
        block = np.zeros((chunk, *shape[1:]), np.float16)
        count = min(chunk, shape[0] - start)
        block[:count] = generator.integers(-9, 9, (count, *shape[1:]), dtype=np.int8)
        writer.write(start // chunk, {"patches": block})
        plain[start : start + count] = block[:count]
    plain.flush()
    write_sealed(writer, [[str(row) for row in range(shape[0])]], "image_id", folder / "manifest.json")
    return open_features(folder), np.load(folder / "plain.npy", mmap_mode="c")


class MemoryMap(Dataset[torch.Tensor]):
    """The rows of a memory map."""

    def __init__(self, plain: np.ndarray) -> None:
        self.plain = plain

    def __len__(self) -> int:
        return len(self.plain)

    def __getitem__(self, row: int) -> torch.Tensor:
        return torch.from_numpy(self.plain[row])


def epochs(store: FeatureStore, plain: np.ndarray, batch: int, turns: int) -> dict[str, float]:
    """Images a second of the median epoch of each loader; the loaders take turns."""
    data, load = FeatureDataset(store), partial(DataLoader, batch_size=batch, shuffle=True)
    loaders = {
        "feature_batches": FeatureBatches(store, batch_images=batch),
        **{f"feature_dataset_{n}": load(data, num_workers=n, collate_fn=data.collate) for n in (0, 2)},
        **{f"memory_map_{n}": load(MemoryMap(plain), num_workers=n) for n in (0, 2)},
    }
    seconds: dict[str, list[float]] = {name: [] for name in loaders}
    for _ in range(turns):
        for name, loader in loaders.items():
            begin = time.perf_counter()
            for _ in loader:
                pass
            seconds[name].append(time.perf_counter() - begin)
    return {name: round(len(plain) / statistics.median(values), 1) for name, values in seconds.items()}


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
        store, plain = make(Path(folder), shape, options.chunk)
        array = store["patches"]
        small = make_eight_bits(Path(folder), array)
        ordinary = zarr.open_array(array.directory, mode="r")
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
        of_epochs = epochs(store, plain, options.batch, options.turns)
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
        "epochs": of_epochs,
        "ratio_of_datasets": {
            n: round(of_epochs[f"feature_dataset_{n}"] / of_epochs[f"memory_map_{n}"], 3) for n in (0, 2)
        },
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
