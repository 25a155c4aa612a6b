"""One store, filled by processes of bash and of dask, as docs/scale.md shows."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import vitcapr
from tests.checkpoints import make_dataset, save_checkpoint, tiny_vit
from tests.docs.blocks import REPOSITORY, blocks_of
from tests.forks import Forks
from vitcapr.commands.extract import app

PAGE = REPOSITORY / "docs/scale.md"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set of 300 images, the page's backbone, and where commands run."""
    save_checkpoint(tiny_vit(), tmp_path / "backbones/facebook/dinov2-small")
    make_dataset(tmp_path / "study/data", 300)
    monkeypatch.setenv("VITCAPR_BACKBONES", str(tmp_path / "backbones"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def store_files(study: Path) -> dict[str, bytes]:
    """The files of the store, and its manifest."""
    files = [path for path in (study / "study").rglob("*") if path.is_file() and "data" not in path.parts]
    return {str(path.relative_to(study)): path.read_bytes() for path in files if "parts" not in path.parts}


def fill_by_bash(forks: Forks) -> None:
    block = next(block for block in blocks_of(PAGE) if block.language == "bash")
    done = run("bash", "-ec", re.sub(r"^vitcapr ", f"{forks.python} -m vitcapr ", block.text, flags=re.MULTILINE))
    assert done.returncode == 0, done.stderr


def test_processes_of_bash_fill_a_store(study: Path, forks: Forks) -> None:
    fill_by_bash(forks)
    assert any("/c/4/" in name for name in store_files(study))  # five chunks


@pytest.mark.slow
def test_dask_fills_the_same_store(study: Path, forks: Forks) -> None:
    fill_by_bash(forks)
    by_bash = store_files(study)
    shutil.rmtree(study / "study/features")
    shutil.rmtree(study / "study/stores", ignore_errors=True)
    block = next(block for block in blocks_of(PAGE) if block.language == "python")
    (study / "fill.py").write_text(block.text)
    done = run(sys.executable, "fill.py")
    assert done.returncode == 0, done.stderr
    assert "300" in done.stdout
    assert store_files(study) == by_bash


@pytest.mark.usefixtures("study")
def test_a_rank_of_an_array_is_told_by_the_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    def extract(*options: str) -> str:
        words = ["study/data", "facebook/dinov2-small", "study/features/dino", "--chunk", "32", *options]
        result = CliRunner().invoke(app, words)
        return "" if result.exception is None else str(result.exception)

    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "3")
    monkeypatch.setenv("SLURM_ARRAY_TASK_MAX", "2")
    for rank in ("2", "0"):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", rank)
        assert extract() == ""
    assert "is missing or cut short" in extract("--seal")
    assert extract("--rank", "1") == extract("--seal") == ""
    assert vitcapr.open_features("study/features/dino")["cls"].shape[0] == 300
    # Other shares may be computed later: what earlier calls left does not matter.
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "1")
    assert "ranks of the Slurm array are 0 to 2, not 0 to 0; give the number of shares" in extract("--rank", "2")
    assert extract("--of", "1", "--rank", "0", "--settings", '{"patches": "none"}') == ""
    assert "patches" not in vitcapr.open_features("study/features/dino")
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "3")
    assert "rank 3 is not one of the 3 shares" in extract("--rank", "3")
