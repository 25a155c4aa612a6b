"""What is not computed twice: after a stage that wrote the same bytes again, and by a second experiment."""

import json
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Snakemake, copy_checkout

pytestmark = [pytest.mark.timeout(1800), pytest.mark.slow]
SMALL = """
experiment: tiny
data:
  scenes: {images: 40, size: 56, validation: 0.1, test: 0.1}
trained_backbone: {hidden_size: 16, layers: 1, heads: 2, epochs: 1}
features: {chunk: 8, batch: 8}
captioners: {attention: {backbone: vit}}
"""


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A checkout with the features of an experiment of a few pictures."""
    folder = tmp_path_factory.mktemp("extracted")
    copy_checkout(folder)
    (folder / "tiny.yaml").write_text(SMALL)
    done = snakemake(folder, "--", "features")
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture
def own(extracted: Path, tmp_path: Path) -> Path:
    """A copy of it, to compute in."""
    return Path(shutil.copytree(extracted, tmp_path / "project", symlinks=True))


def test_a_manifest_made_again_with_the_same_bytes_stops_the_cascade(own: Path, snakemake: Snakemake) -> None:
    manifest = own / "results" / "tiny" / "data" / "manifest.json"
    before, time = manifest.read_bytes(), manifest.stat().st_mtime_ns
    done = snakemake(own, "--forcerun", "data", "--", "results/tiny/data/manifest.json")
    assert done.returncode == 0, done.stdout
    assert manifest.stat().st_mtime_ns > time
    assert manifest.read_bytes() == before
    assert "Nothing to be done" in snakemake(own, "--dry-run", "--", "features").stdout


def test_another_manifest_does_not_stop_it(own: Path, snakemake: Snakemake) -> None:
    manifest = own / "results" / "tiny" / "data" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes() + b" ")
    assert "Nothing to be done" not in snakemake(own, "--dry-run", "--", "features").stdout


def test_a_second_experiment_extracts_nothing_again(own: Path, snakemake: Snakemake) -> None:
    chunks = {path: path.stat().st_mtime_ns for path in (own / "results" / "stores").rglob("c/*/*/*")}
    assert chunks
    name = "features/vit/manifest.json"
    done = snakemake(own, "--config", "experiment=other", "--", f"results/other/{name}")
    assert done.returncode == 0, done.stdout
    assert {path: path.stat().st_mtime_ns for path in (own / "results" / "stores").rglob("c/*/*/*")} == chunks
    first, second = (json.loads((own / "results" / one / name).read_text()) for one in ("tiny", "other"))
    assert first["fingerprint"] == second["fingerprint"]
