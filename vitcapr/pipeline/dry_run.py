"""Runs Snakemake's dry run."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from vitcapr.errors import UserError


def dry_run(configfiles: Sequence[Path], *options: str) -> str:
    """The output of ``snakemake --dry-run`` in this folder.

    Raises:
        UserError: Snakemake fails; the message is the last line of its output.
    """
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--nocolor", *options]
    if configfiles:
        command += ["--configfile", *map(str, configfiles)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise UserError(f"snakemake --dry-run: {lines[-1].strip().removeprefix('error: ')}", where=Path.cwd())
    return done.stdout + done.stderr
