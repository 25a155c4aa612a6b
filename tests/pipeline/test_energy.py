"""Energy from counters that wrap, and no number where there is no counter."""

from pathlib import Path

import pytest

from vitcapr.pipeline import records
from vitcapr.pipeline.records import Meter


@pytest.fixture(autouse=True)
def _no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "GPU", tmp_path / "none")


def zone(folder: Path, name: str, microjoules: int) -> Path:
    path = folder / name
    path.mkdir(parents=True)
    (path / "max_energy_range_uj").write_text("10000000\n")
    (path / "energy_uj").write_text(f"{microjoules}\n")
    return path / "energy_uj"


def test_a_counter_that_wraps_counts_on(tmp_path: Path) -> None:
    first = zone(tmp_path, "intel-rapl:0", 9_000_000)
    second = zone(tmp_path, "intel-rapl:1", 1_000_000)
    zone(tmp_path, "intel-rapl:0:0", 0)
    with Meter(tmp_path) as meter:
        first.write_text("500000\n")
        second.write_text("3000000\n")
    assert meter.joules == {"cpu 0": 1.5, "cpu 1": 2.0}
    assert meter.absent == {"gpu": "there is no NVIDIA GPU"}


def test_missing_counters_are_reported(tmp_path: Path) -> None:
    with Meter(tmp_path) as meter:
        pass
    report = meter.report()
    assert report["joules"] == {}
    assert "no counter can be read" in report["absent"]["cpu"]
