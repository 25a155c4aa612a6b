"""What grows with the data: stores, manifests and the DAG at sizes ten times apart.

A store has 4 patches and a CLS vector of 8 numbers each: chunk files of 4 kB and 1 kB, so that the time is that of
files, checksums and lists and hardly that of bytes. An image has five captions. The DAG has an extraction cut into
tasks and models on its store. Each step runs in a process of its own. Prints JSON and a table of CPU seconds (user and
system) and peak memory; the memory includes the imported libraries.

    python -m benchmarks.scale
    python -m benchmarks.scale --images 10000 --folder /fast/disk
"""

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from vitcapr.files import sha256_bytes
from vitcapr.formats.manifest import read_manifest, write_manifest
from vitcapr.store.check import unused_stores
from vitcapr.store.known_rows import KnownRows, write_row_digests
from vitcapr.store.layout import ArrayLayout
from vitcapr.store.reader import open_features
from vitcapr.store.seal import seal, write_part
from vitcapr.store.writer import StoreWriter, fingerprint_of, store_folder

REPOSITORY = Path(__file__).parents[1]
CHUNK, PATCHES, WIDTH, CAPTIONS, BATCH, BATCHES = 64, 4, 8, 5, 64, 1000
RECIPE = {"backbone": "synthetic"}


def ids_of(images: int) -> list[str]:
    return [f"image-{number:08d}" for number in range(images)]


def digests_of(images: int) -> list[str]:
    return [sha256_bytes(name.encode()) for name in ids_of(images)]


def writer_of(stores: Path, images: int) -> tuple[str, StoreWriter]:
    fingerprint = fingerprint_of({**RECIPE, "images": images})
    layouts = {
        "cls": ArrayLayout((images, WIDTH), CHUNK, "float16", ("image", "channel")),
        "patches": ArrayLayout((images, PATCHES, WIDTH), CHUNK, "float16", ("image", "patch", "channel")),
    }
    return fingerprint, StoreWriter(store_folder(stores, fingerprint), layouts)


def begin(results: Path, images: int) -> tuple[str, StoreWriter]:
    fingerprint, writer = writer_of(results / "stores", images)
    writer.begin({**RECIPE, "fingerprint": fingerprint}, ids_of(images))
    write_row_digests(writer.folder, digests_of(images))
    return fingerprint, writer


def sealed_of(results: Path, images: int) -> Path:
    return results / f"of{images}" / "features" / "vit" / "manifest.json"


def fill(results: Path, images: int) -> None:
    """Write the chunks, one by one as an extraction does, and the part of its only task."""
    fingerprint, writer = begin(results, images)
    draw = np.random.default_rng(0)
    chunks = range(-(-images // CHUNK))
    for index in chunks:
        writer.write(
            index,
            {
                name: draw.integers(-9, 9, (CHUNK, *layout.shape[1:])).astype(np.float16)
                for name, layout in writer.layouts.items()
            },
        )
    write_part(results / "part.json", fingerprint, writer, chunks)


def close(results: Path, images: int) -> None:
    seal([results / "part.json"], results / "stores", ids_of(images), sealed_of(results, images))


def look(results: Path, images: int) -> None:
    open_features(sealed_of(results, images)).close()


def draw_batches(results: Path, images: int) -> None:
    """Open the store and read random batches."""
    draw = np.random.default_rng(1)
    with open_features(sealed_of(results, images)) as store:
        for _ in range(BATCHES):
            store["patches"].gather(draw.integers(0, images, BATCH))


def grow(results: Path, images: int) -> None:
    """Make a store of a tenth more images, in which all rows of the first are known and linked or copied."""
    more = images + images // 10
    _, writer = begin(results, more)
    known = KnownRows.find(results / "stores", RECIPE, digests_of(more), CHUNK, except_for=writer.folder)
    copied = sum(known.copy_chunk(index, writer) for index in range(images // CHUNK))
    assert copied == images // CHUNK


def collect(results: Path, images: int) -> None:
    """List the stores that nothing refers to: the grown one, which is not sealed."""
    assert [store.path for store in unused_stores(results)] == [
        writer_of(results / "stores", images * 11 // 10)[1].folder
    ]


def write_data(results: Path, images: int) -> None:
    names = ids_of(images)
    table = pd.DataFrame({"image_id": names, "path": [f"{name}.jpg" for name in names], "split": "train"})
    table = table.assign(width=640, height=480, sha256=digests_of(images))
    numbers = np.arange(images * CAPTIONS)
    owners = table["image_id"].to_numpy()[numbers // CAPTIONS]
    captions = pd.DataFrame({"caption_id": [f"{number:09d}" for number in numbers], "image_id": owners})
    text = [f"a dog number {number} runs over the grass with a ball" for number in numbers % 1000]
    captions = captions.assign(language="en", text=text, split="train")
    write_manifest(
        directory=results / "data",
        dataset="synthetic",
        image_root=results,
        images=table,
        captions=captions,
        rejected=[],
    )


def read_data(results: Path, images: int) -> None:
    assert len(read_manifest(results / "data" / "manifest.json").captions) == images * CAPTIONS


STEPS: dict[str, Callable[[Path, int], None]] = {
    "fill and digest the chunks": fill,
    "seal": close,
    "open": look,
    f"open, {BATCHES:,} random batches of {BATCH}": draw_batches,
    "grow by a tenth": grow,
    "list unused stores": collect,
    f"write the manifest, {CAPTIONS} captions an image": write_data,
    "read the manifest": read_data,
}


def _measured(step: Callable[[Path, int], None], results: Path, images: int, answer: Any) -> None:
    begun = time.process_time(), time.perf_counter()
    step(results, images)
    answer.send(
        {
            "cpu_seconds": round(time.process_time() - begun[0], 2),
            "seconds": round(time.perf_counter() - begun[1], 2),
            "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }
    )


def measured(step: Callable[[Path, int], None], results: Path, images: int) -> dict[str, float]:
    """The cost of a step, in a fork."""
    context = multiprocessing.get_context("fork")
    answers, answer = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(step, results, images, answer))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"error: {step.__name__} with {images} images ended with {process.exitcode}")
    return dict(answers.recv())


def dry_run(folder: Path, tasks: int, models: int) -> dict[str, float]:
    """``snakemake --dry-run`` of an experiment with so many extraction tasks and retrievers."""
    retriever = {"backbone": "vit", "embedding_dim": 16, "text": {"kind": "bilstm", "word_dim": 8, "hidden_dim": 16}}
    experiment = {
        "experiment": "scale",
        "data": {"scenes": {"images": 80, "size": 56}},
        "text": {"vocabulary": {"min_count": 1}},
        "backbones": {"vit": {"source": "trained"}},
        "trained_backbone": {"hidden_size": 32, "layers": 1, "heads": 2, "epochs": 1},
        "features": {"tasks": tasks, "chunk": 16, "batch": 16},
        "retrievers": {"base": retriever},
        "grid": [{"retrievers": ["base"], "vary": {"seed": list(range(models))}}],
        "run": {
            "captioners": [],
            "decodings": [],
            "rerankings": [],
            "retrievers": [f"base-seed{n}" for n in range(models)],
        },
    }
    path = folder / f"dag-{tasks}-{models}.yaml"
    path.write_text(yaml.safe_dump(experiment), encoding="utf-8")
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "all", "--configfile", str(path)]
    subprocess.run(command, check=True, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_seconds": round(ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--dag", nargs="*", default=["1x1", "20x10", "200x100"], help="extraction tasks x models")
    parser.add_argument("--folder", type=Path, help="where the files are written; default: the temporary folder")
    options = parser.parse_args()
    report: dict[str, Any] = {"steps": {}, "dry_run": {}}
    for images in options.images:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for name, step in STEPS.items():
                found = measured(step, Path(folder), images)
                report["steps"].setdefault(name, {})[images] = found
                print(f"{images:>9,} images, {name}: {found}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for size in options.dag:
            tasks, models = map(int, size.split("x"))
            report["dry_run"][size] = dry_run(Path(folder), tasks, models)
            print(f"dry run of {size}: {report['dry_run'][size]}", file=sys.stderr, flush=True)
    print(json.dumps(report, indent=2))
    print(table(report))


def table(report: dict[str, Any]) -> str:
    """Markdown: CPU seconds and peak memory of each step at each size."""
    sizes = sorted({images for found in report["steps"].values() for images in found})
    lines = ["| images | " + " | ".join(f"{images:,}" for images in sizes) + " |", "| --- |" + " ---: |" * len(sizes)]
    for name, found in report["steps"].items():
        cells = [f"{found[images]['cpu_seconds']} s, {found[images]['peak_mb']} MB" for images in sizes]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [
        f"| dry run, {size.replace('x', ' tasks x ')} models | {cost['cpu_seconds']} s |"
        for size, cost in report["dry_run"].items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
