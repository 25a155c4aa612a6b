"""Copies of the checkout in which tests run Snakemake."""

import shutil
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PARTS = ("Snakefile", "config.yaml", "rules", "workflow", "profiles", "envs", "snakemake_logger_plugin_vitcapr")
"""What Snakemake reads."""


def copy_checkout(folder: Path, *more: str, like: Path = REPOSITORY) -> None:
    """Copy what Snakemake reads, and ``more``, such as ``vitcapr``; without it, the package is the installed one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (*PARTS, *more):
        if (like / name).is_dir():
            # With the compiled modules and known digests, but for those that another process just writes.
            shutil.copytree(like / name, folder / name, ignore=shutil.ignore_patterns("*.pyc.*", "*.partial"))
        else:
            shutil.copy2(like / name, folder / name)
    (folder / "slurm").symlink_to("profiles/slurm")
