"""Records GPU use and memory during training, every two seconds. A continued training appends its rows."""

import importlib
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from vitcapr.files import write_text
from vitcapr.formats.training import gpu_csv, gpu_row, whole_rows

_GIB = 2**30


@contextmanager
def sample_gpu_use(
    path: Path, device: torch.device, *, continued: bool = False, interval: float = 2.0
) -> Iterator[None]:
    """Sample ``device`` in a thread while the block runs.

    ``path`` becomes a CSV of samples below a comment line that names the device. Without a GPU, or where NVML
    cannot be asked, it is the comment and the header alone, and the comment says why. Memory and use are the whole
    GPU's, as nvidia-smi shows them.

    Args:
        continued: whether the rows of an earlier run of the same training are kept; the clock goes on from the last.
        interval: seconds between two samples.
    """
    device_note, gpu = _find(device)
    note, rows = whole_rows(path) if continued else (None, [])
    write_text(path, gpu_csv(note if rows and note else device_note, rows))
    if gpu is None:
        yield
        return
    begin = float(rows[-1].split(",")[0]) if rows else 0.0
    stop = threading.Event()

    def sample() -> None:
        start = time.monotonic()
        while not stop.wait(interval):
            values = (begin + time.monotonic() - start, *gpu.sample())
            with path.open("a", encoding="utf-8") as file:
                file.write(gpu_row(values) + "\n")

    thread = threading.Thread(target=sample, name="gpu-use", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        gpu.close()


class _Gpu:
    """One GPU as NVML knows it: the one that torch computes on, whatever CUDA_VISIBLE_DEVICES renumbers."""

    def __init__(self, device: torch.device) -> None:
        self._nvml: Any = importlib.import_module("pynvml")
        self._nvml.nvmlInit()
        self._handle = self._nvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(device).uuid}")

    def sample(self) -> tuple[float | None, float | None, float | None]:
        """Use in percent, memory used and memory there is, in GiB; None for what this GPU does not tell."""

        def ask(question: Any, names: tuple[str, ...], unit: int) -> list[float | None]:
            try:
                answer = question(self._handle)
            except self._nvml.NVMLError:
                return [None] * len(names)
            return [getattr(answer, name) / unit for name in names]

        used, total = ask(self._nvml.nvmlDeviceGetMemoryInfo, ("used", "total"), _GIB)
        (use,) = ask(self._nvml.nvmlDeviceGetUtilizationRates, ("gpu",), 1)
        return use, used, total

    def close(self) -> None:
        self._nvml.nvmlShutdown()


def _find(device: torch.device) -> tuple[str, _Gpu | None]:
    """What is trained on, in words, and the GPU where it can be sampled."""
    if device.type != "cuda":
        return f"no GPU: trained on the CPU ({_cores()} cores, {_processor()})", None
    name = torch.cuda.get_device_name(device)
    try:
        return name, _Gpu(device)
    except ImportError:
        return f"{name}: not sampled, nvidia-ml-py is not installed", None
    except Exception as error:  # a measurement on the side never ends a training
        return f"{name}: not sampled, {' '.join(str(error).split()) or type(error).__name__}", None


def _cores() -> int:
    """Cores that this process may use, or that there are where the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
