"""The installed package without a checkout: ``vitcapr init``, and the workflow as a module with a prefix."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.docs.blocks import REPOSITORY, blocks_of

SMALL = """
captioning:
  experiment: mine
  data: {scenes: {images: 20, size: 56, validation: 0.1, test: 0.1}}
  text: {vocabulary: {min_count: 1}}
  captioners: {attention: {backbone: vit}}
"""
VOCABULARY = "captioning/results/mine/text/vocabulary.json"

Run = Callable[..., str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of the wheel, in a folder that Python imports from."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def run(site: Path) -> Run:
    """Run a module of Python in a folder."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("VITCAPR_")}
    environment = {**kept, "PYTHONPATH": str(site)}

    def run(folder: Path, *arguments: str) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def new_study(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new")
    run(folder, "vitcapr", "init", "study")
    return folder / "study"


@pytest.fixture
def study(new_study: Path, tmp_path: Path) -> Path:
    return shutil.copytree(new_study, tmp_path / "study", symlinks=True)


def test_the_description_links_to_nothing_that_an_index_lacks(site: Path) -> None:
    (metadata,) = site.glob("vitcapr-*.dist-info/METADATA")
    text = metadata.read_text(encoding="utf-8").partition("\n\n")[2]
    assert "](" not in text
    named = set(re.findall(r"\(`([^`]+)`\)", text))
    assert {"docs/demo.md", "docs/your-data.md", "config/README.md"} <= named
    assert [name for name in named if not (site / "vitcapr/project" / name).is_file()] == []


def test_a_new_study_has_the_whole_workflow(run: Run, study: Path, site: Path) -> None:
    found = {path.relative_to(study).as_posix() for path in study.rglob("*")}
    assert found >= {"Snakefile", "config.yaml", "experiments/template.yaml", "profiles/slurm/profile.yaml"}
    plan = run(study, "snakemake", "--dry-run", "--profile", "slurm")
    assert "rule train_captioner:" in plan
    assert "results/demo/summary.csv" in plan
    assert f"Origin: {site}" in run(study, "inspect", "vitcapr.experiment.paths", "--details")
    assert run(study, "vitcapr", "config", "check").startswith("data: scenes, 10,000 images")


@pytest.mark.timeout(300)
def test_with_a_prefix_everything_lies_below_it(run: Run, study: Path) -> None:
    page = blocks_of(REPOSITORY / "docs/your-data.md")
    shown = next(block.text for block in page if "module vitcapr:" in block.text)
    (study / "Snakefile").write_text(f'configfile: "outer.yaml"\n\n\n{shown.rstrip()} as captioning_*\n')
    (study / "outer.yaml").write_text(SMALL)
    (study / "mine.yaml").write_text(yaml.safe_dump(yaml.safe_load(SMALL)["captioning"]))
    (study / "config.yaml").unlink()
    before = {path.name for path in study.iterdir()}
    run(study, "snakemake", "--cores", "2", "--", VOCABULARY)
    assert {path.name for path in study.iterdir()} == {*before, "captioning", ".snakemake"}
    assert (study / "captioning/results/mine/runs/vocabulary.json").exists()
    assert "is in use" in run(study, "vitcapr", "gc", "--results", "captioning/results", "--configfile", "mine.yaml")
    (study / "config.yaml").write_text("of: [another workflow")
    assert "Nothing to be done" in run(study, "snakemake", "--cores", "2", "--", VOCABULARY)
    run(study, "snakemake", "--report", "report.html", "--", VOCABULARY)
    with pytest.raises(AssertionError, match=r"'sed' \(config of the module vitcapr with --config captioning="):
        run(study, "snakemake", "--dry-run", "--config", 'captioning={"sed": 1}')
    (study / "Snakefile").write_text(shown.replace('    config:\n        config["captioning"]\n', ""))
    with pytest.raises(AssertionError, match=r"the module has no configuration \(module vitcapr\); give it one"):
        run(study, "snakemake", "--dry-run")


def test_the_template_is_filled_in(run: Run, tmp_path: Path, site: Path) -> None:
    (tmp_path / "my photographs").mkdir()
    (tmp_path / "captions.csv").touch()
    files = ("--photographs", "my photographs", "--captions", "captions.csv", "--backbone", "facebook/dinov2-small")
    printed = run(tmp_path, "vitcapr", "init", "filled", *files)
    template = (tmp_path / "filled/experiments/template.yaml").read_text()
    values = yaml.safe_load(template)
    images, captions = str(tmp_path / "my photographs"), str(tmp_path / "captions.csv")
    assert values["data"]["table"] == {"images": images, "captions": captions}
    assert values["backbones"]["vit-tiny"] == {"source": "facebook/dinov2-small"}
    assert (
        template.splitlines()[:9] == (site / "vitcapr/project/experiments/template.yaml").read_text().splitlines()[:9]
    )
    cited = re.findall(r"(?:docs|config)/[\w-]+\.md", (tmp_path / "filled/config.yaml").read_text())
    assert f"are in {site}/vitcapr/project" in printed
    assert [page for page in cited if not (site / "vitcapr/project" / page).is_file()] == []


def test_a_study_is_not_made_over_another(run: Run, new_study: Path) -> None:
    with pytest.raises(AssertionError, match="the folder of a new study must be empty"):
        run(new_study.parent, "vitcapr", "init", "study")
    with pytest.raises(AssertionError, match=r"did you mean 'flickr8k-vit-tiny'"):
        run(new_study.parent, "vitcapr", "init", "other", "--experiment", "flickr8k-vit-tin")
