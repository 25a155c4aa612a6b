"""Records GPU use and memory during training, every two seconds. A continued training appends its rows."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from vitcapr.files import write_text
from vitcapr.formats.training_files import gpu_csv, gpu_row, whole_rows

_GIB = 2**30


@contextmanager
def sample_gpu_use(
    path: Path, device: torch.device, *, continued: bool = False, interval: float = 2.0
) -> Iterator[None]:
    """Sample ``device`` in a thread while the block runs.

    ``path`` becomes a CSV of samples below a comment line that names the device; a training on a CPU has no samples.
    Memory and use are of the whole GPU, as nvidia-smi shows them.

    Args:
        continued: whether the rows of an earlier run of the same training are kept; the clock goes on from the last.
        interval: seconds between two samples.
    """
    on_gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if on_gpu else "no GPU: trained on the CPU"
    note, rows = whole_rows(path) if continued else (None, [])
    write_text(path, gpu_csv(note if rows and note else name, rows))
    if not on_gpu:
        yield
        return
    begin = float(rows[-1].split(",")[0]) if rows else 0.0
    stop = threading.Event()

    def sample() -> None:
        start = time.monotonic()
        while not stop.wait(interval):
            values = (begin + time.monotonic() - start, *_use_and_memory(device))
            with path.open("a", encoding="utf-8") as file:
                file.write(gpu_row(values) + "\n")

    thread = threading.Thread(target=sample, name="gpu-use", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _use_and_memory(device: torch.device) -> tuple[float | None, float, float]:
    """Return the use in percent, None if the GPU does not report it; the memory used and the total memory in GiB."""
    free, total = torch.cuda.mem_get_info(device)
    try:
        use: float | None = torch.cuda.utilization(device)
    except Exception:  # NVML has its own errors; a measurement on the side never ends a training.
        use = None
    return use, (total - free) / _GIB, total / _GIB
