"""Another workflow uses this one as a module with a prefix: everything lies below the prefix, records included."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SNAKEFILE = f"""
import yaml
from pathlib import Path

config = yaml.safe_load(Path("{REPOSITORY}/config.yaml").read_text())
config["experiment"] = "mine"
config["data"]["scenes"] |= {{"images": 20, "size": 56}}
config["text"]["vocabulary"]["min_count"] = 1


module vitcapr:
    snakefile:
        "{REPOSITORY}/Snakefile"
    config:
        config
    prefix:
        "study"


use rule * from vitcapr
"""


def run(folder: Path, *arguments: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("VITCAPR_")}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.timeout(300)
def test_everything_lies_below_the_prefix(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    target = "study/results/mine/text/vocabulary.json"
    run(tmp_path, "snakemake", "--cores", "2", "--", target)
    assert {path.name for path in tmp_path.iterdir()} == {"Snakefile", "study", ".snakemake"}
    assert (tmp_path / "study/results/mine/runs/vocabulary.json").exists()
    assert (tmp_path / "study/results/.code.json").exists()
    assert "made by   vocabulary, on " in run(tmp_path, "vitcapr", "why", target)
    assert "Nothing to be done" in run(tmp_path, "snakemake", "--cores", "2", "--", target)
