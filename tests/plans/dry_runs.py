"""The jobs of a dry run, as Snakemake's logger interface gives them."""

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forks import Forks, snakemake_forks


@dataclass(frozen=True)
class DryJob:
    """A job that Snakemake would run.

    Attributes:
        shellcmd: its command; None for a target rule.
    """

    rule_name: str
    output: list[str]
    log: list[str]
    threads: int
    shellcmd: str | None
    wildcards: dict[str, str]
    resources: dict[str, str]

    @property
    def name(self) -> str:
        """As ``vitcapr status`` names it."""
        return " ".join([self.rule_name.removesuffix("_attentively"), "/".join([*self.wildcards.values()][1:])]).strip()


def dry_run(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] = os.environ,
    forks: Callable[[], Forks] = snakemake_forks,
) -> list[DryJob]:
    """The jobs of ``snakemake --dry-run ARGUMENTS`` in a folder, without target rules."""
    search = f"{Path(__file__).parent}{os.pathsep}{environment.get('PYTHONPATH', '')}"
    options = ("--dry-run", "--logger", "plan", *arguments)
    done = forks().run("-m", "snakemake", *options, folder=folder, environment={**environment, "PYTHONPATH": search})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    jobs = [DryJob(**json.loads(line)) for line in done.stdout.splitlines()]
    return [job for job in jobs if job.output]


def commands(jobs: list[DryJob]) -> str:
    """The commands of the jobs, a line each."""
    return "\n".join(str(job.shellcmd) for job in jobs)


def options_of(jobs: list[DryJob], rule: str) -> list[dict[str, Any]]:
    """The options that each job of a rule hands to its stage."""
    words = [shlex.split(str(job.shellcmd)) for job in jobs if job.rule_name == rule]
    return [json.loads(each[each.index("--job") + 1]) for each in words]
