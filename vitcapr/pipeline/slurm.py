"""Questions and orders to Slurm, by its own programs; nothing where they are missing."""

import getpass
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError


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


def refusals(profile: Mapping[str, Any], needs: Mapping[str, Mapping[str, Any]], where: Path) -> Iterator[UserError]:
    """Yield what Slurm would refuse of the jobs of a run: a partition, an account, or a request.

    Args:
        profile: the content of the file ``where``.
        needs: ``threads`` and the resources of a job of each rule; ``gpu`` of those rules that can use one.
    """
    default, sites, cores = (profile.get(name) or {} for name in ("default-resources", "set-resources", "set-threads"))
    partitions = (ask("sinfo", "--noheader", "--format=%R") or "").split()
    show = ("sacctmgr", "--noheader", "--parsable2", "show", "associations")
    accounts = (ask(*show, f"user={getpass.getuser()}", "format=account") or "").split()
    asked = set[tuple[str, ...]]()
    for rule, need in needs.items():
        own = sites.get(rule) or {}
        site = {**default, **({} if need.get("gpu") == 0 else own)}
        names = (
            ("partition", site.get("slurm_partition"), partitions),
            ("account", site.get("slurm_account"), accounts),
        )
        unknown = next(
            ((kind, name, known) for kind, name, known in names if name and known and name not in known), None
        )
        words = _request(site, {**need, **own, "threads": cores.get(rule, need["threads"])})
        question = tuple(words) if unknown is None else unknown[:2]
        if question in asked:
            continue
        asked.add(question)
        if unknown is not None:
            kind, name, known = unknown
            remedy = f"write one of {', '.join(known)}"
            yield UserError(
                f"rule {rule} asks for the {kind} '{name}', which Slurm does not have", where=where, remedy=remedy
            )
        elif (done := subprocess.run(words, capture_output=True, text=True, check=False)).returncode:
            remedy = "change what the profile asks for"
            yield UserError(f"Slurm would refuse rule {rule}: {done.stderr.strip()}", where=where, remedy=remedy)


def _request(site: Mapping[str, Any], need: Mapping[str, Any]) -> list[str]:
    """Return the command that asks Slurm whether it would take a job."""
    gpus, model = site.get("gpu", need.get("gpu", 0)), site.get("gpu_model")
    options = {
        "partition": site.get("slurm_partition"),
        "account": site.get("slurm_account"),
        "qos": site.get("qos"),
        "nodes": site.get("nodes"),
        "cpus-per-task": need["threads"],
        "mem": need["mem_mb"],
        "time": need["runtime"],
        "gres": site.get("gres"),
        "gpus": f"{model}:{gpus}" if gpus and model else gpus or None,
    }
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    return ["sbatch", "--test-only", *given, "--wrap=true"]
