"""``snakemake --lint`` is clean in an environment of Snakemake alone, as the workflow catalogue has it."""

import os
import subprocess
import sys
from pathlib import Path

from vitcapr.pipeline.code import HARMLESS, LIBRARIES

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


SNAKEMAKES = {
    *("jinja2", "pydantic", "snakemake", "snakemake_interface_logger_plugins", "typing_extensions", "yaml"),
}
"""The libraries of vitcapr that Snakemake brings."""


def test_lint_needs_nothing_but_snakemake(tmp_path: Path) -> None:
    blocked = (LIBRARIES.keys() | HARMLESS.keys()) - SNAKEMAKES
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
