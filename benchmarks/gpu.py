"""What a GPU does, in under ten minutes: ``make bench-gpu``. Without one, a line says so.

- extraction with ViT-B/16 and ViT-L/14 in bfloat16 with random weights, from JPEG files to a sealed store, against the
  bare forward pass, decoding alone and a plain loop over a DataLoader, and for what it waited;
- a training step of the captioner in mixed precision, fed from a store and from memory, against a plain prototype's;
- captions a second, greedy and with a beam of 5, in float32 and in bfloat16;
- the peak of the GPU's memory in each.

Writes results/benchmarks-gpu.json and prints it.

    python -m benchmarks.gpu
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.decoding import END, LONGEST, PAD, PATCHES, START, UNKNOWN, WIDTH, captioner
from benchmarks.inputs import VIT_BASE, VIT_LARGE, VIT_TINY, measured, peak_mb, render_jpegs, write_vit
from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.stepwise import greedy
from vitcapr.encoders.devices import autocast, dtype_name, resolve_device

RESULTS = Path("results")
PHOTOGRAPHS, SIDE = 750, 448
EXTRACTIONS = {"vit_b16": (VIT_BASE, 8192), "vit_l14": (VIT_LARGE, 6144)}
"""Shape of the network, and images, some seconds of work for a large card."""
TRIAL = {"vit_ti16": (VIT_TINY, 8)}


def extraction(manifest: Path, vit: Path, images: int, batch: int, turns: int) -> Any:
    workers = len(os.sched_getaffinity(0))
    options = ("--dtype", "bfloat16", "--images", str(images), "--batch", str(batch), "--chunk", str(batch))
    more = ("--turns", str(turns), "--workers", str(workers))
    return measured("benchmarks.extraction", "--manifest", str(manifest), "--backbone", str(vit), *options, *more)


@torch.inference_mode()
def decoding(device: torch.device, images: int, turns: int = 3) -> dict[str, float | None]:
    """Captions a second of the best turn, for each search and arithmetic."""
    model = captioner().to(device)
    patches = torch.randn(images, PATCHES, WIDTH, generator=torch.Generator().manual_seed(1)).to(device)
    common: dict[str, Any] = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN], "max_length": LONGEST}
    searches: dict[str, Callable[[Any], list[Any]]] = {
        "greedy": lambda memory: greedy(model, memory, **common),
        "beam_5": lambda memory: beam_search(model, memory, **common, beam_size=5),
    }
    rates: dict[str, float | None] = {}
    for name, search in searches.items():
        for dtype in (torch.float32, torch.bfloat16):
            seconds = []
            for _ in range(turns + 1):
                begin = time.perf_counter()
                with autocast(device, dtype):
                    search(model.encode({"patches": patches}))
                seconds.append(time.perf_counter() - begin)
            rates[f"{name}_{dtype_name(dtype)}"] = round(images / min(seconds[1:]), 1)
    return {**rates, "peak_mb": peak_mb()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", type=Path, help="photographs; rendered ones if not given")
    parser.add_argument("--trial", action="store_true", help="run everything at a tiny size, without a GPU too")
    options = parser.parse_args()
    if not (torch.cuda.is_available() or options.trial):
        print("no GPU: PyTorch sees none here, so nothing is measured")
        return
    device, trial = resolve_device("auto"), options.trial
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU: a trial",
        "torch": torch.__version__,
        "cores": len(os.sched_getaffinity(0)),
        "extraction": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        manifest = options.manifest or render_jpegs(Path(folder) / "data", 64 if trial else PHOTOGRAPHS, SIDE)
        for name, (shape, images) in (TRIAL if trial else EXTRACTIONS).items():
            vit = write_vit(Path(folder) / name, shape)
            batch, turns = (4, 1) if trial else (256, 2)
            report["extraction"][name] = extraction(manifest, vit, images, batch, turns)
    tiny = ("--batches", "1", "--batch", "2", "--turns", "1")
    report["training"] = measured("benchmarks.training", *(tiny if trial else ()))
    report["captions_per_second"] = decoding(device, images=4 if trial else 512, turns=1 if trial else 3)
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(report, indent=2)
    (RESULTS / "benchmarks-gpu.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
