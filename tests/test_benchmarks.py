"""Every benchmark that a page quotes still runs: at a tiny size, and its report is well formed."""

import json
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

from benchmarks.inputs import VIT_TINY, render, write_vit
from tests.explorer.experiment import write_experiment

ROOT = Path(__file__).parents[1]
SMALL_STORE = ("--images", "8", "--patches", "4", "--channels", "8", "--chunk", "4", "--batch", "4", "--turns", "1")
ARGUMENTS = {
    "audit": ("audit", "500"),
    "loader": SMALL_STORE,
    "retrieval": ("--images", "50", "--turns", "1"),
    "training": ("--batches", "1", "--batch", "2", "--turns", "1"),
}
SLOW = {
    "blip2_cost": (),
    "decoding": ("--images", "2"),
    "extraction": (
        "--manifest",
        "{manifest}",
        "--backbone",
        "{vit}",
        *("--images", "4", "--batch", "2", "--turns", "1"),
    ),
    "language_model": ("--images", "1"),
    "scale": ("--sizes", "200x1", "--dag", "1x1"),
}
NEEDS_MORE = {"explorer": "tested below", "scale_peers": "needs the packages of make bench-peers"}


def printed(
    name: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "arguments"),
    [*ARGUMENTS.items(), *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW.items())],
)
def test_a_benchmark_at_a_tiny_size(
    name: str,
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {}
    if name == "extraction":
        places = {"manifest": render(tmp_path / "data", 40, 56), "vit": write_vit(tmp_path / "vit", VIT_TINY)}
    report = printed(name, tuple(each.format(**places) for each in arguments), monkeypatch, capsys)
    if name == "scale":
        assert "failed" not in report
        assert "| dry run: 1x1 tasks x models |" in report
    else:
        assert json.loads(report)


def test_the_explorer_of_more_images_than_the_experiment_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six images become eight, without a browser: their paths, which a manifest names once, are links."""
    results = write_experiment(tmp_path / "toy")
    monkeypatch.setenv("PATH", "")
    report = json.loads(printed("explorer", (str(results), "--images", "8"), monkeypatch, capsys))
    assert (report["images"], report["systems"], report["milliseconds"]) == (8, 3, None)
    assert report["MB"]["all"] > 0


@pytest.mark.browser
@pytest.mark.usefixtures("driver")
def test_the_explorer_in_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = write_experiment(tmp_path / "toy")
    monkeypatch.setenv("PATH", os.environ["MACHINE_PATH"])
    report = json.loads(printed("explorer", (str(results), "--images", "8"), monkeypatch, capsys))
    assert set(report["milliseconds"]) == {"ready", "filter by a word", "sort", "open an image", "map"}


def test_every_benchmark_that_a_page_quotes_is_tested() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    quoted = {name for page in pages for name in re.findall(r"-m benchmarks\.(\w+)", page.read_text(encoding="utf-8"))}
    assert quoted
    assert quoted <= {*ARGUMENTS, *SLOW, *NEEDS_MORE}
