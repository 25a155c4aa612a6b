"""The energy that the machine uses while a stage runs: RAPL for the CPU, NVML for GPUs."""

import contextlib
import threading
from pathlib import Path
from typing import Any, Self

POWERCAP = Path("/sys/class/powercap")
GPU = Path("/dev/nvidiactl")
_SECONDS = 30.0
"""Between two readings: a counter of 65 kJ, the smallest there is, lasts longer at any power."""


class Meter:
    """A context manager that reads the energy counters at its start, periodically and at its end.

    Attributes:
        joules: by counter (``cpu 0``, ``gpu 0``); what the whole device used, other programs' share included.
        absent: why there is no number, by ``cpu`` and ``gpu``.
    """

    def __init__(self, powercap: Path = POWERCAP) -> None:
        self.joules: dict[str, float] = {}
        self.absent: dict[str, str] = {}
        self._zones = _readable_zones(powercap)
        self._last: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        if not self._zones:
            self.absent["cpu"] = f"no counter can be read in {powercap}"

    def __enter__(self) -> Self:
        self._read()
        self._gpus = self._gpu_counters()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self._read()
        now = self._gpu_counters() if self._gpus else {}
        self.joules |= {name: (now[name] - start) / 1000 for name, start in self._gpus.items() if name in now}

    def report(self) -> dict[str, Any]:
        """For a run's record: ``joules`` by device, and ``absent``."""
        return {"joules": {name: round(value, 1) for name, value in self.joules.items()}, "absent": self.absent}

    def _watch(self) -> None:
        while not self._over.wait(_SECONDS):
            self._read()

    def _read(self) -> None:
        """Add what each zone used since the last reading; a counter that is smaller than before has wrapped once."""
        for name, zone in self._zones.items():
            now = int((zone / "energy_uj").read_text())
            used = now - self._last.get(name, now)
            if used < 0:
                used += int((zone / "max_energy_range_uj").read_text())
            self.joules[name] = self.joules.get(name, 0.0) + used / 1e6
            self._last[name] = now

    def _gpu_counters(self) -> dict[str, int]:
        """Millijoules since the driver was loaded, by GPU."""
        if not GPU.exists():
            self.absent["gpu"] = "there is no NVIDIA GPU"
            return {}
        import pynvml  # type: ignore[import-untyped, unused-ignore]

        try:
            pynvml.nvmlInit()
            numbers = range(pynvml.nvmlDeviceGetCount())
            handles = {f"gpu {number}": pynvml.nvmlDeviceGetHandleByIndex(number) for number in numbers}
            return {name: int(pynvml.nvmlDeviceGetTotalEnergyConsumption(each)) for name, each in handles.items()}
        except pynvml.NVMLError as error:
            self.absent["gpu"] = f"NVML: {error}"
            return {}


def _readable_zones(powercap: Path) -> dict[str, Path]:
    """The packages' zones: ``intel-rapl:0`` is one, ``intel-rapl:0:0`` is a part of it."""
    zones = {}
    for zone in sorted(powercap.glob("intel-rapl:*")):
        number = zone.name.partition(":")[2]
        if ":" not in number:
            with contextlib.suppress(OSError, ValueError):
                int((zone / "energy_uj").read_text())
                zones[f"cpu {number}"] = zone
    return zones
