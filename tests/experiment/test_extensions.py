"""Each extension can be taken out: the rest parses, plans and runs the small workflow of ``.test/``."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

from tests.checkouts import REPOSITORY, copy_checkout
from tests.experiment.conftest import Project, rules_of
from vitcapr.loader import extensions

EXTENSIONS = list(extensions())
SMALL: dict[str, Any] = yaml.safe_load((REPOSITORY / ".test/config.yaml").read_text(encoding="utf-8"))


@pytest.fixture(params=EXTENSIONS)
def without(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """A checkout without one extension, with the small experiment."""
    root, package = tmp_path / "project", request.param.split(".")
    copy_checkout(root, "vitcapr")
    shutil.rmtree(root.joinpath(*package))
    values = dict(SMALL)
    if package[-1] == "demo":
        del values["trained_backbone"]
        values |= photographs(root)
    (root / "small.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return Project(root, "small.yaml")


def photographs(root: Path) -> dict[str, Any]:
    """Pictures with captions and a tiny ViT, instead of those that the demo makes."""
    from tests.checkpoints import save_checkpoint, tiny_vit

    (root / "photographs").mkdir()
    lines = ["image,caption,split"]
    for number in range(40):
        name, split = f"{number}.png", ("train", "train", "validation", "test")[number % 4]
        Image.new("RGB", (40, 40), (6 * number, 255 - 6 * number, 80)).save(root / "photographs" / name)
        lines.append(f"{name},a {'green' if number < 20 else 'red'} picture of number {number % 3},{split}")
    (root / "captions.csv").write_text("\n".join(lines), encoding="utf-8")
    save_checkpoint(tiny_vit(), root / "weights")
    table = {"dataset": "table", "table": {"images": "photographs", "captions": "captions.csv"}}
    return {"data": table, "backbones": {"vit": {"source": "weights"}}}


def test_the_rest_plans_its_jobs_and_explains_its_commands(without: Project) -> None:
    assert {"extract", "train_captioner", "rerank", "score_retrieval", "summary"} <= rules_of(without.dry_run())
    done = Project(without.root).command("--help", program=("vitcapr",))
    assert done.returncode == 0, done.stderr
    assert "evaluate" in done.stdout


@pytest.mark.slow
def test_the_rest_runs(without: Project) -> None:
    without.snakemake("--cores", "2")
    assert (without.root / "results/test/summary.csv").is_file()
