"""The toys together run every rule, so that no command of a rule is tried for the first time by a user."""

import json
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Snakemake
from vitcapr.pipeline.records import GPU

pytestmark = pytest.mark.timeout(1800)

TOYS = sorted(file.stem for file in (Path(__file__).parent / "toys").glob("*.yaml"))
TARGETS = {"all", "features", "captioners", "captions", "retrievers", "metrics", "figures"}
UNUSED = {"cpu_job", "gpu_job"} | (set() if GPU.exists() else {"draw_gpu"})
"""Templates of other rules, and the figure of GPU use on a machine without one."""


def executed(project: Path) -> set[str]:
    """The rules of the jobs that Snakemake has recorded."""
    records = (project / ".snakemake" / "metadata").rglob("*")
    return {json.loads(path.read_text(encoding="utf-8"))["rule"] for path in records if path.is_file()}


def test_the_toys_run_every_rule(toys: Path, snakemake: Snakemake) -> None:
    """Snakemake lists the same rules for every experiment."""
    done = snakemake(toys, "--list-rules")
    assert done.returncode == 0, done.stdout
    rules = {line for line in done.stdout.splitlines() if line.isidentifier()}
    assert "data" in rules
    assert executed(toys) == rules - TARGETS - UNUSED


@pytest.mark.parametrize("experiment", TOYS)
def test_nothing_is_left_to_do(toys: Path, snakemake: Snakemake, experiment: str) -> None:
    again = snakemake(toys, "--dry-run", experiment=experiment)
    assert again.returncode == 0, again.stdout
    assert "Nothing to be done" in again.stdout
