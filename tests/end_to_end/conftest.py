"""One very small run of the whole DAG, shared by the tests that look at what it left."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CONFIG = """
experiment: tiny
data:
  scenes: {images: 80, size: 56}
text:
  vocabulary: {min_count: 1}
trained_backbone: {hidden_size: 32, layers: 1, heads: 2, epochs: 1}
features: {tasks: 2, chunk: 16, batch: 16}
captioners:
  attention:
    embedding_dim: 16
    hidden_dim: 16
    attention_dim: 16
    training:
      phases: [{epochs: 2, batch_images: 16, learning_rate: 0.01}]
  baseline:
    backbone: vit
    architecture: baseline
    embedding_dim: 16
    hidden_dim: 16
    training:
      phases: [{epochs: 1, batch_images: 16, learning_rate: 0.01}]
retrievers:
  recommended:
    embedding_dim: 16
    image: {queries: 2, hidden_dim: 16}
    text: {word_dim: 16, hidden_dim: 16}
    training:
      phases: [{epochs: 2, batch_images: 16, hard_negatives: hardest}]
      queue: 64
  paper_hard_negatives:
    training:
      phases: [{epochs: 1, batch_images: 16, captions_per_image: 1, hard_negatives: second}]
metrics: {bootstrap_samples: 50}
figures: {formats: [png], examples: 4, attended: 1, failures: 2}
run:
  captioners: [attention, baseline]
  retrievers: [paper_hard_negatives, recommended]
  paper: vitcap-r
"""


Snakemake = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def snakemake() -> Snakemake:
    """Run snakemake on the small experiment in a folder; what it printed is in ``stdout``."""

    def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "tiny.yaml", *arguments]
        return subprocess.run(
            command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )

    return run


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, snakemake: Snakemake) -> Path:
    """A checkout with all results of the small experiment."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("Snakefile", "config.yaml"):
        shutil.copy(REPOSITORY / name, folder)
    for name in ("rules", "workflow", "profiles", "envs", "experiments"):
        shutil.copytree(REPOSITORY / name, folder / name)
    (folder / "slurm").symlink_to("profiles/slurm")
    (folder / "tiny.yaml").write_text(CONFIG)
    done = snakemake(folder)
    assert done.returncode == 0, done.stdout
    return folder
