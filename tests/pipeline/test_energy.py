"""Energy is read from the counters of GPUs; without a counter, the record says why it is missing."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vitcapr.pipeline import records


def counters(values: list[int]) -> Any:
    """NVML of two GPUs; each reading takes the next value."""
    nvml: Any = ModuleType("pynvml")
    nvml.NVMLError, nvml.nvmlInit = RuntimeError, lambda: None
    nvml.nvmlDeviceGetCount, nvml.nvmlDeviceGetHandleByIndex = lambda: 2, lambda number: number
    nvml.nvmlDeviceGetTotalEnergyConsumption = lambda _: values.pop(0)
    return nvml


def test_energy_is_the_difference_of_two_readings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "GPU", tmp_path)
    monkeypatch.setitem(sys.modules, "pynvml", counters([1000, 5000, 2500, 5000]))
    start, why = records.gpu_millijoules()
    assert why == ""
    assert records.energy_since(start) == {"joules": {"gpu 0": 1.5, "gpu 1": 0.0}, "absent": {}}


def test_a_missing_counter_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "GPU", tmp_path / "none")
    assert records.energy_since({}) == {"joules": {}, "absent": {"gpu": "there is no NVIDIA GPU"}}
