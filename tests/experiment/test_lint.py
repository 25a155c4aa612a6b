"""``snakemake --lint`` is clean in an environment of Snakemake alone, as the workflow catalogue has it."""

import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[2]
BLOCKER = """\
import pkgutil
import sys

found = pkgutil.iter_modules
pkgutil.iter_modules = lambda *given: [one for one in found(*given) if "_plugin_" not in one.name]


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"{{name}} is not in an environment of Snakemake alone", name=name)


sys.meta_path.insert(0, Refuse())
"""


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(name: str, found: set[str]) -> set[str]:
    """A distribution and all that it requires without extras."""
    if name not in found:
        found.add(name)
        for line in distribution(name).requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                closure(normalised(needed.name), found)
    return found


def ours_alone() -> set[str]:
    """The modules of vitcapr's dependencies that Snakemake does not bring."""
    snakemake = closure("snakemake", set())
    wanted = {normalised(Requirement(line).name) for line in distribution("vitcapr").requires or () if ";" not in line}
    modules = {
        "scikit-learn": "sklearn",
        "pillow": "PIL",
        "snakemake-executor-plugin-slurm": "",
        "nvidia-ml-py": "pynvml",
    }
    return {modules.get(name, name.replace("-", "_")) for name in wanted - snakemake} - {""}


def test_lint_needs_nothing_but_snakemake(tmp_path: Path) -> None:
    blocked = ours_alone()
    assert {"torch", "numpy", "pandas", "grimp"} <= blocked
    (tmp_path / "sitecustomize.py").write_text(BLOCKER.format(names=blocked), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--lint", "--snakefile", "workflow/Snakefile"],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "in a good condition" in done.stderr + done.stdout
