"""The files for the people who host and join the repository."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

import vitcapr
from tests.docs.blocks import REPOSITORY

GITHUB, DOCS = REPOSITORY / ".github", REPOSITORY / "docs"


def test_hooks_run_what_make_lint_runs() -> None:
    config = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())
    lint = subprocess.run(["make", "-n", "lint", "BIN=BIN"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    commands = [line for line in lint.stdout.splitlines() if line.startswith("BIN/") and " pip " not in line]
    entries = [hook["entry"].replace(".venv/bin/", "BIN/") for repo in config["repos"] for hook in repo["hooks"]]
    assert commands
    assert entries == commands


@pytest.mark.parametrize(("name", "command"), [("ci", ".ci/run"), ("docs", "make docs")])
def test_workflows(name: str, command: str) -> None:
    workflow = yaml.safe_load((GITHUB / f"workflows/{name}.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert command in [step.get("run") for step in workflow["jobs"][name]["steps"]]


@pytest.mark.parametrize("path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.md")), ids=lambda path: path.stem)
def test_issue_templates(path: Path) -> None:
    _, front, body = path.read_text().split("---\n", 2)
    assert yaml.safe_load(front).keys() == {"name", "about", "labels"}
    assert body.strip()


def test_the_wheel_the_citation_the_changelog_and_the_docs_have_one_version() -> None:
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert citation["version"] == vitcapr.__version__ == re.findall(r"^## (\S+)", changelog, re.MULTILINE)[0]
    wheels = [re.findall(r"vitcapr-([\d.]+)-py3", page.read_text(encoding="utf-8")) for page in DOCS.rglob("*.md")]
    assert {version for versions in wheels for version in versions} == {vitcapr.__version__}
