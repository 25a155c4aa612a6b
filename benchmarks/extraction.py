"""Photographs to sealed store, against the bare forward pass of the same model.

Both are measured in turns in one run, at the same dtype, batch and threads, so that what else the machine does falls
on both alike. Prints JSON: images a second of each turn, the ratio of the medians, and for what the last extraction
waited. On a GPU, decoding alone takes turns with them, too: whichever of decoding and forward pass is slower is the
limit of an extraction. With ``--workers``, a plain loop takes turns with them: transformers' processor in the workers
of a DataLoader, the model, and one .npy for each array.

    python -m benchmarks.extraction --manifest results/demo/data/manifest.json --backbone vit-tiny-patch16-224-augreg
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from benchmarks.inputs import peak_mb
from vitcapr.data.images import ImageSource
from vitcapr.encoders.checkpoints import locate
from vitcapr.encoders.devices import dtype_name, resolve_device, resolve_dtype
from vitcapr.encoders.image_encoders import load_image_encoder
from vitcapr.encoders.image_towers import model_image_size
from vitcapr.encoders.network_checks import ImageEncoder
from vitcapr.encoders.preprocess import Preprocessing, read_preprocessing
from vitcapr.formats.manifest import Manifest, read_manifest, write_manifest
from vitcapr.progress import Reporter
from vitcapr.store.fill import StorePlan, fill
from vitcapr.store.image_rows import ImageFeatures, Pixels
from vitcapr.store.layout import Rows
from vitcapr.store.sealing import seal, write_part


def bare_forward(backbone: ImageEncoder, size: tuple[int, int], batch: int, batches: int) -> float:
    """Images a second of the model alone, on one batch of pixels that is ready in memory."""
    pixels = torch.randn(batch, 3, *size).to(backbone.device, backbone.dtype)
    start = time.perf_counter()
    for _ in range(batches):
        cls = backbone.features(pixels)["cls"]
    cls.sum().item()
    return batch * batches / (time.perf_counter() - start)


class Files(Dataset[torch.Tensor]):
    """The photographs as a checkpoint's own processor prepares them, (3, S, S)."""

    def __init__(self, data: Manifest, checkpoint: Path) -> None:
        from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

        self._paths = [data.image_root / path for path in data.images["path"]]
        self._processor = ViTImageProcessorPil.from_pretrained(checkpoint)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        with Image.open(self._paths[index]) as image:
            pixels: torch.Tensor = self._processor(image.convert("RGB"), return_tensors="pt")["pixel_values"][0]
        return pixels


def plain_loop(data: Manifest, backbone: ImageEncoder, checkpoint: Path, batch: int, workers: int) -> float:
    """Images a second of the loop that one would write without a store, the model already loaded."""
    start = time.perf_counter()
    loader = DataLoader(Files(data, checkpoint), batch, num_workers=workers, pin_memory=backbone.device.type == "cuda")
    parts: dict[str, list[np.ndarray]] = {name: [] for name in backbone.shapes}
    for pixels in loader:
        ready = pixels.to(backbone.device, backbone.dtype, non_blocking=True)
        for name, values in backbone.features(ready).items():
            parts[name].append(values.half().cpu().numpy())
    with tempfile.TemporaryDirectory() as folder:
        for name, arrays in parts.items():
            np.save(Path(folder) / f"{name}.npy", np.concatenate(arrays))
        return len(data.images) / (time.perf_counter() - start)


def repeated(data: Manifest, images: int, folder: Path) -> Manifest:
    """The first photographs of a data set, which come again where there are fewer; each has an id of its own. The data
    set is in ``folder``."""
    turns, captions = range(-(-images // len(data.images))), data.captions.head(1)
    names, paths = data.images["image_id"], data.images["path"]
    tables = [data.images.assign(image_id=names + f"#{turn}", path="./" * turn + paths) for turn in turns]
    options = {"dataset": data.dataset, "image_root": data.image_root, "rejected": []}
    return read_manifest(write_manifest(folder, images=pd.concat(tables).head(images), captions=captions, **options))


def whole_extraction(
    some: Manifest, backbone: ImageEncoder, preprocessing: Preprocessing, batch: int, chunk: int, waits: list[str]
) -> float:
    """Images a second from files to a sealed store, the model already loaded."""
    images = len(some.images)
    with tempfile.TemporaryDirectory() as folder, ImageSource(some.image_root) as source:
        quiet = Reporter(Path(folder) / "log", interval=1e9)
        quiet.console.quiet = True
        start = time.perf_counter()
        plan = StorePlan(Path(folder), Rows.of_images(some), {"benchmark": images}, chunk, code="")
        pixels = Pixels(some.image_table, source, preprocessing)
        features = ImageFeatures(pixels, backbone, "float16")
        chunks = range(plan.chunks)
        writer = fill(plan, chunks, lambda: features, batch=batch, reuse=False, report=quiet)
        part = Path(folder) / "part.json"
        write_part(part, plan.fingerprint, writer, chunks)
        seal([part], Path(folder), plan.rows, Path(folder) / "manifest.json")
        seconds = time.perf_counter() - start
        log = (Path(folder) / "log").read_text(encoding="utf-8")
        waits.append(log[log.index("waited in") :].partition("\n")[0])
        return images / seconds


def decoding(data: Manifest, preprocessing: Preprocessing, device: torch.device, batch: int) -> float:
    """Images a second of decoding and resizing alone."""
    rows = np.arange(len(data.images))
    start = time.perf_counter()
    with ImageSource(data.image_root) as source:
        pixels = Pixels(data.image_table, source, preprocessing)
        for _ in pixels.decoded(np.split(rows, range(batch, len(rows), batch)), device):
            pass
    return len(rows) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--backbone", required=True)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--images", type=int, default=256, help="photographs, which are repeated if there are fewer")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--workers", type=int, help="of the plain loop, which is left out without")
    options = parser.parse_args()

    device = resolve_device("auto")
    dtype = resolve_dtype(options.dtype, device)
    checkpoint = locate(options.backbone, "main")
    preprocessing, _ = read_preprocessing(checkpoint.folder, model_image_size(checkpoint.folder))
    backbone = load_image_encoder(checkpoint.folder, size=preprocessing.size, dtype=dtype, device=device)
    images, waits = options.images, list[str]()
    made = tempfile.TemporaryDirectory()
    data = repeated(read_manifest(options.manifest), images, Path(made.name))
    measures: dict[str, Callable[[], float]] = {
        "forward": lambda: bare_forward(backbone, preprocessing.size, options.batch, -(-images // options.batch)),
        "extraction": lambda: whole_extraction(data, backbone, preprocessing, options.batch, options.chunk, waits),
    }
    if device.type == "cuda":
        measures["decoding"] = lambda: decoding(data, preprocessing, device, options.batch)
    if options.workers is not None:
        measures["plain_loop"] = lambda: plain_loop(data, backbone, checkpoint.folder, options.batch, options.workers)
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
        "target": 0.85 if device.type == "cpu" else 0.9,
        "waits": waits[-1],
        "peak_mb": peak_mb(),
    }
    if "decoding" in medians:
        slower = min(medians["forward"], medians["decoding"])
        result["ratio_to_slower_of_forward_and_decoding"] = round(medians["extraction"] / slower, 3)
    if "plain_loop" in medians:
        result["ratio_to_plain_loop"] = round(medians["extraction"] / medians["plain_loop"], 2)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
