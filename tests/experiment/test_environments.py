"""The conda environments of the rules stand on their own: Snakemake builds them from a copy in another folder."""

import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[2]
MAKE: dict[str, Any] = runpy.run_path(str(REPOSITORY / "envs" / "make.py"))
NAMES = sorted(path.stem for path in (REPOSITORY / "envs").glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_is_that_of_the_dependencies(name: str) -> None:
    """Make it again with: python envs/make.py"""
    assert (REPOSITORY / "envs" / f"{name}.yaml").read_text(encoding="utf-8") == MAKE["environment"](name)


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_names_no_other_file(name: str) -> None:
    """Each line is an option with a URL or a pinned package, and all packages of pyproject.toml are there."""
    content = yaml.safe_load((REPOSITORY / "envs" / f"{name}.yaml").read_text(encoding="utf-8"))
    (lines,) = (part["pip"] for part in content["dependencies"] if isinstance(part, dict))
    options = [line for line in lines if line.startswith("-")]
    assert all(line.startswith("--extra-index-url https://") for line in options)
    pins = {pin.name: pin for pin in (Requirement(line) for line in lines if line not in options)}
    wanted = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert list(pins) == [Requirement(line).name for line in wanted]
    for needed in map(Requirement, wanted):
        (version,) = pins[needed.name].specifier
        assert version.operator == "=="
        assert needed.specifier.contains(version.version), needed
        assert pins[needed.name].extras == needed.extras
