"""The vectors of many images in a store beside Lance, litdata and WebDataset, in one run.

The same rows of 384 numbers of float16 in each format, in files of a few megabytes; random batches of 256, each format
in a process of its own. A store and Lance read any rows; a store with ``shuffle_chunks``, litdata and WebDataset read
file after file and shuffle what they hold. Prints JSON with the versions: processor microseconds a row with the files
in the page cache, and microseconds by the clock and bytes read for a byte of the rows without.

    make bench-peers
    PYTHONPATH=.peers python -m benchmarks.scale_peers --rows 1000000 --folder /fast/disk
"""

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import lance
import litdata
import numpy as np
import pyarrow as pa
import torch
import webdataset

from benchmarks.loader import make
from vitcapr.batches.image_batches import shuffled_by_chunks
from vitcapr.store.layout import ArrayLayout
from vitcapr.store.reader import FeatureArray

WIDTH, CHUNK, BATCH, BATCHES, WINDOW = 384, 4096, 256, 100, 8
Batches = Iterator[np.ndarray]


def open_store(folder: Path, rows: int) -> FeatureArray:
    layout = ArrayLayout((rows, 1, WIDTH), CHUNK, "float16", ("image", "patch", "channel"))
    return FeatureArray(folder / "patches", layout)


def store_batches(store: FeatureArray, window: int | None) -> Batches:
    draw, rows = np.random.default_rng(0), np.arange(len(store))
    order = draw.permutation(rows) if window is None else shuffled_by_chunks(rows // CHUNK, window, draw)
    return (store.gather(order[at : at + BATCH]) for at in range(0, len(order), BATCH))


def write_lance(folder: Path, array: np.ndarray) -> None:
    values = pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), WIDTH)
    lance.write_dataset(pa.table({"vector": values}), str(folder), max_rows_per_file=64 * CHUNK)


def lance_batches(dataset: Any) -> Batches:
    order = np.random.default_rng(0).permutation(dataset.count_rows())
    for at in range(0, len(order), BATCH):
        column = dataset.take(order[at : at + BATCH].tolist()).column("vector").combine_chunks()
        yield column.values.to_numpy().reshape(-1, WIDTH)


def rows_from(first: int, array: np.ndarray) -> Batches:
    yield from np.array(array[first : first + CHUNK])


def write_litdata(folder: Path, array: np.ndarray) -> None:
    firsts = list(range(0, len(array), CHUNK))
    options: dict[str, Any] = {"num_workers": 1, "chunk_bytes": "4MB", "verbose": False}
    litdata.optimize(partial(rows_from, array=array), firsts, str(folder), **options)


def litdata_batches(dataset: Any) -> Batches:
    rows = (row for row in dataset)
    while some := list(islice(rows, BATCH)):
        yield np.stack(some)


def write_webdataset(folder: Path, array: np.ndarray) -> None:
    folder.mkdir()
    with webdataset.ShardWriter(str(folder / "%06d.tar"), maxcount=CHUNK, verbose=0) as shards:
        for number, row in enumerate(array):
            shards.write({"__key__": f"{number:08d}", "npy": row})


def open_webdataset(folder: Path) -> Any:
    shards = [str(path) for path in sorted(folder.iterdir())]
    return webdataset.WebDataset(shards, shardshuffle=len(shards)).shuffle(WINDOW * CHUNK, initial=WINDOW * CHUNK)


def webdataset_batches(dataset: Any) -> Batches:
    return (batch for (batch,) in dataset.decode().to_tuple("npy").batched(BATCH))


def forget(folder: Path) -> None:
    """Take the files out of the page cache."""
    os.sync()
    for file in (path for path in folder.rglob("*") if path.is_file()):
        with file.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measured(folder: Path, opened: Callable[[], Any], batches: Callable[[Any], Batches]) -> dict[str, float]:
    def read() -> float:
        begin = time.process_time()
        for batch in islice(batches(opened()), BATCHES):
            assert batch.size == BATCH * WIDTH
        return time.process_time() - begin

    forget(folder)
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_inblock, time.perf_counter()
    read()
    cold = time.perf_counter() - begun
    blocks = resource.getrusage(resource.RUSAGE_SELF).ru_inblock - before
    for _ in batches(opened()):  # Everything in the page cache.
        pass
    rows = BATCH * BATCHES
    return {
        "warm_us_a_row": round(1e6 * min(read() for _ in range(3)) / rows, 2),
        "cold_us_a_row": round(1e6 * cold / rows, 1),
        "cold_bytes_read_a_byte": round(512 * blocks / (rows * WIDTH * 2), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; default: a temporary folder")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = Path(temporary)
        _, plain = make(folder, (options.rows, 1, WIDTH), CHUNK)
        array = plain.reshape(-1, WIDTH)
        write_lance(folder / "lance", array)
        write_litdata(folder / "litdata", array)
        write_webdataset(folder / "webdataset", array)
        store = partial(open_store, folder, options.rows)
        lists = partial(litdata.StreamingDataset, str(folder / "litdata"), shuffle=True)
        tars = partial(open_webdataset, folder / "webdataset")
        tasks = {
            "any row: vitcapr": (folder / "patches", store, partial(store_batches, window=None)),
            "any row: lance": (folder / "lance", partial(lance.dataset, str(folder / "lance")), lance_batches),
            "file after file: vitcapr": (folder / "patches", store, partial(store_batches, window=WINDOW)),
            "file after file: litdata": (folder / "litdata", lists, litdata_batches),
            "file after file: webdataset": (folder / "webdataset", tars, webdataset_batches),
        }
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
            found = {name: processes.submit(measured, *task).result() for name, task in tasks.items()}
    versions = {name: version(name) for name in ("pylance", "litdata", "webdataset", "torch")}
    print(json.dumps({"rows": options.rows, "versions": versions, **found}, indent=2))


if __name__ == "__main__":
    main()
