"""Questions and orders to Slurm, by its own programs; nothing where they are missing."""

import os
import subprocess


def ask(*command: str) -> str | None:
    """Return what a program prints, without the last line end; None if it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def requeue() -> bool:
    """Ask Slurm to start the job of this process again, as the same job, which uses up no attempt of Snakemake.

    A job that was cancelled is left alone, and so is one that Snakemake did not submit.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if job is None:
        return False
    state = ask("squeue", "--noheader", "--format=%T %k", "--jobs", job) or ""
    return state.startswith("RUNNING rule_") and ask("scontrol", "requeue", job) is not None
