"""What a GPU does: ``make bench-gpu``. Without one, a line says so.

- extraction with a ViT-B/16 in bfloat16 with random weights, from files to a sealed store, against the bare forward
  pass; one thread a core decodes;
- a training step of the captioner in mixed precision, fed from a store and from memory, against a plain prototype's;
- captions a second, greedy and with a beam of 5, in float32 and in bfloat16, and the peak of the GPU's memory.

Writes results/benchmarks-gpu.json and prints it.

    python -m benchmarks.gpu
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.decoding import END, LONGEST, PAD, PATCHES, START, UNKNOWN, WIDTH, captioner
from benchmarks.inputs import VIT_BASE, measured, render, write_vit
from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.stepwise import greedy
from vitcapr.encoders.precision import autocast, dtype_name

RESULTS = Path("results")
PICTURES, SIDE, BATCH = 4096, 448, 256


def extraction(folder: Path) -> Any:
    manifest, vit = render(folder, PICTURES, SIDE), write_vit(folder / "vit", VIT_BASE)
    options = ("--dtype", "bfloat16", "--images", str(PICTURES), "--batch", str(BATCH), "--chunk", str(BATCH))
    return measured("benchmarks.extraction", "--manifest", str(manifest), "--backbone", str(vit), *options)


@torch.inference_mode()
def decoding(device: torch.device, images: int, turns: int = 3) -> dict[str, float]:
    """Captions a second of the best turn, for each search and arithmetic."""
    model = captioner().to(device)
    patches = torch.randn(images, PATCHES, WIDTH, generator=torch.Generator().manual_seed(1)).to(device)
    common: dict[str, Any] = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN], "max_length": LONGEST}
    searches: dict[str, Callable[[Any], list[Any]]] = {
        "greedy": lambda memory: greedy(model, memory, **common),
        "beam_5": lambda memory: beam_search(model, memory, **common, beam_size=5),
    }
    found = {}
    for name, search in searches.items():
        for dtype in (torch.float32, torch.bfloat16):
            seconds = []
            for _ in range(turns + 1):
                begin = time.perf_counter()
                with autocast(device, dtype):
                    search(model.encode({"patches": patches}))
                seconds.append(time.perf_counter() - begin)
            found[f"{name}_{dtype_name(dtype)}"] = round(images / min(seconds[1:]), 1)
    return found


def main() -> None:
    if not torch.cuda.is_available():
        print("no GPU: PyTorch sees none here, so nothing is measured")
        return
    device = torch.device("cuda")
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
    }
    with tempfile.TemporaryDirectory() as folder:
        report["extraction"] = extraction(Path(folder))
    report["training"] = measured("benchmarks.training")
    torch.cuda.reset_peak_memory_stats(device)
    report["captions_per_second"] = decoding(device, images=512)
    report["decoding_peak_mb"] = round(torch.cuda.max_memory_allocated(device) / 1e6)
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(report, indent=2)
    (RESULTS / "benchmarks-gpu.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
