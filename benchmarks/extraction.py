"""Photographs to sealed store, against the bare forward pass of the same model.

Both are measured in turns in one run, at the same dtype, batch and threads, so that what else the machine does falls
on both alike. Prints JSON: images a second of each turn, and the ratio of the medians.

    python -m benchmarks.extraction --manifest results/demo/data/manifest.json --backbone vit-tiny-patch16-224-augreg
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from vitcapr.data.images import ImageSource
from vitcapr.encoders.base import ImageEncoder
from vitcapr.encoders.checkpoints import locate
from vitcapr.encoders.image_encoders import image_size_of, load_image_encoder
from vitcapr.encoders.precision import dtype_name, resolve_device, resolve_dtype
from vitcapr.encoders.preprocess import Preprocessing, read_preprocessing
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.progress import Reporter
from vitcapr.store.fill import StorePlan, fill
from vitcapr.store.image_rows import ImageFeatures, Pixels
from vitcapr.store.rows import Rows
from vitcapr.store.seal import seal, write_part


def bare_forward(backbone: ImageEncoder, size: tuple[int, int], batch: int, batches: int) -> float:
    """Images a second of the model alone, on one batch of pixels that is ready in memory."""
    pixels = torch.randn(batch, 3, *size).to(backbone.device, backbone.dtype)
    start = time.perf_counter()
    for _ in range(batches):
        cls = backbone.features(pixels)["cls"]
    cls.sum().item()
    return batch * batches / (time.perf_counter() - start)


def whole_extraction(
    data: Manifest, backbone: ImageEncoder, preprocessing: Preprocessing, images: int, batch: int, chunk: int
) -> float:
    """Images a second from files to a sealed store, the model already loaded."""
    some = replace(data, images=data.images.head(images))
    with tempfile.TemporaryDirectory() as folder, ImageSource(data.image_root) as source:
        quiet = Reporter(Path(folder) / "log", interval=1e9)
        quiet.console.quiet = True
        start = time.perf_counter()
        plan = StorePlan(Path(folder), Rows.of_images(some), {"benchmark": images}, chunk, code="")
        pixels = Pixels(some.images, source, preprocessing)
        features = ImageFeatures(pixels, preprocessing, backbone, "float16")
        chunks = range(plan.chunks)
        writer = fill(plan, chunks, lambda: features, batch=batch, reuse=False, report=quiet)
        part = Path(folder) / "part.json"
        write_part(part, plan.fingerprint, writer, chunks)
        seal([part], Path(folder), plan.rows.ids, Path(folder) / "manifest.json")
        return images / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()

    device = resolve_device("auto")
    dtype = resolve_dtype(options.dtype, device)
    checkpoint = locate(options.backbone, "main")
    preprocessing, _ = read_preprocessing(checkpoint.folder, image_size_of(checkpoint.folder))
    backbone = load_image_encoder(checkpoint.folder, size=preprocessing.size, dtype=dtype, device=device)
    data = read_manifest(options.manifest)
    images = min(options.images, len(data.images))
    measures: dict[str, Callable[[], float]] = {
        "forward": lambda: bare_forward(backbone, preprocessing.size, options.batch, -(-images // options.batch)),
        "extraction": lambda: whole_extraction(data, backbone, preprocessing, images, options.batch, options.chunk),
    }
    bare_forward(backbone, preprocessing.size, options.batch, 2)
    turns: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(options.turns):
        for name, measure in measures.items():
            turns[name].append(round(measure(), 1))
    medians = {name: statistics.median(values) for name, values in turns.items()}
    result = {
        "benchmark": "extraction",
        "backbone": options.backbone,
        "dtype": dtype_name(dtype),
        "device": device.type,
        "threads": torch.get_num_threads(),
        "batch": options.batch,
        "images_per_second": turns,
        "ratio": round(medians["extraction"] / medians["forward"], 3),
        "target": 0.85,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
