"""Which rules an edit makes stale, from what the rules ask for, without asking Snakemake: 50 edits in seconds.

A job is stale if its ``made_from`` is another, or a job before it is stale. The jobs and their files come from one dry
run; the stage of a rule from the rule files. That this agrees with Snakemake is tested too.
"""

import functools
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vitcapr.provenance import code as provenance
from vitcapr.provenance.syntax import TreeDigests
from vitcapr.workflow.experiment import Experiment, load_experiment

MADE_FROM = re.compile(
    r"^(?:rule|use rule \w+ as) (\w+)(?::| with:)$|made_from=experiment\.(\S+)\.made_from,", re.MULTILINE
)


@dataclass(frozen=True)
class PlannedJob:
    rule: str
    wildcards: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def planned_jobs(text: str) -> list[PlannedJob]:
    """The jobs of a forced dry run, in an order in which each comes after those that it reads from."""
    waiting = []
    for block in re.split(r"^(?:local)?rule (?=\w+:$)", text, flags=re.MULTILINE)[1:]:
        fields = dict(re.findall(r"^    (\w+): (.*)$", block, flags=re.MULTILINE))
        if "output" in fields:
            wildcards = (item.partition("=")[::2] for item in fields.get("wildcards", "").split(", "))
            files = (tuple(fields.get(key, "").split(", ")) for key in ("input", "output"))
            waiting.append(PlannedJob(block.partition(":")[0], tuple(wildcards), *files))
    made = {file: job for job in waiting for file in job.outputs}
    ordered: dict[PlannedJob, None] = {}

    def place(job: PlannedJob) -> None:
        if job not in ordered:
            for file in job.inputs:
                if file in made:
                    place(made[file])
            ordered[job] = None

    for job in waiting:
        place(job)
    return list(ordered)


def stages_of_rules(rules: Path) -> dict[str, str]:
    """Rule -> the expression of its stage: ``decode`` -> ``captioning.decode``."""
    found, rule = {}, ""
    for path in sorted(rules.glob("*.smk")):
        for name, expression in MADE_FROM.findall(path.read_text(encoding="utf-8")):
            rule = name or rule
            if expression:
                found[rule] = expression
    return found


def made_from(project: Any, jobs: list[PlannedJob]) -> dict[PlannedJob, str]:
    with standing_in(project.root):
        experiment = load_experiment(Path(project.configfile))
        asked = {job.rule for job in jobs}
        named = stages_of_rules(project.root / "rules")
        stages = {rule: _stage(experiment, text) for rule, text in named.items() if rule in asked}
        return {job: stages[job.rule].made_from(SimpleNamespace(**dict(job.wildcards))) for job in jobs}


def stale_rules(jobs: list[PlannedJob], before: dict[PlannedJob, str], now: dict[PlannedJob, str]) -> set[str]:
    stale: set[str] = set()
    rules = set()
    for job in jobs:
        if before[job] != now[job] or not stale.isdisjoint(job.inputs):
            stale.update(job.outputs)
            rules.add(job.rule)
    return rules


@contextmanager
def standing_in(root: Path) -> Iterator[None]:
    """Settings, code, files and libraries are read as if ``root`` were the checkout that is installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.delenv("VITCAPR_DATA", raising=False)
        patch.delenv("VITCAPR_BACKBONES", raising=False)
        patch.setattr(provenance, "_folder", lambda _: root / "vitcapr")
        patch.setattr(provenance, "_digests", lambda _: _DIGESTS)
        patch.setattr(provenance, "_release", functools.cache(provenance._release.__wrapped__))
        patch.setattr(provenance, "_closure", _closure)
        patch.setattr("vitcapr.workflow.stage.stage_code", functools.cache(provenance.stage_code.__wrapped__))
        patch.setattr(sys, "path", [str(root), *sys.path])
        importlib.invalidate_caches()
        yield


_closure = functools.cache(provenance._closure)
_DIGESTS = TreeDigests()


def _stage(experiment: Experiment, expression: str) -> Any:
    """``figures.draw("curves")`` of the experiment, as the rule file has it."""
    part, _, rest = expression.partition(".")
    name, _, argument = rest.partition("(")
    stage = getattr(getattr(experiment, part), name)
    return stage(argument.strip('")')) if argument else stage
