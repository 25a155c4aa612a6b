"""The parameters of a rule from its stage: the command, the fingerprint of its results, and the number of GPUs."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vitcapr.config.base import StageSettings
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.errors import UserError
from vitcapr.files import canonical_json, sha256_bytes, write_text
from vitcapr.pipeline.fingerprint import fingerprint
from vitcapr.pipeline.stage import DEVICE, Parameter, Role, Stage, find_stage, get_dotted, stage_names

LONGEST = 100_000
"""Characters of a command; Linux takes 131,072 in one word, and a shell gets a command as one."""
JOBS = ".jobs"
"""Folder in the folder of all results with the jobs of longer commands."""

_DAY = 1440
"""Minutes beyond which the time limit of a job does not grow: many partitions allow no more."""

Wildcards = Any
"""Snakemake's wildcards of a job: attributes that are strings."""


@dataclass(frozen=True)
class Stages:
    """All stages of one experiment as attributes: ``stages.decode``.

    Attributes:
        results: the folder of all results.
    """

    config: ExperimentConfig
    results: Path

    def __getattr__(self, name: str) -> "RuleStage":
        if name not in stage_names():
            raise AttributeError(f"no stage '{name}'")
        return RuleStage(find_stage(name), self.config, self.results)


@dataclass(frozen=True)
class RuleStage:
    """A stage, for the rules that run it.

    Attributes:
        bound: values that are not wildcards, and files by their names; each is a constant or a function of the
            wildcards.
    """

    stage: Stage
    config: ExperimentConfig
    results: Path
    bound: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, **bound: Any) -> dict[str, Any]:
        """Return the params of a rule: ``**stages.decode()``."""
        job = replace(self, bound=bound)
        return {"command": job.command, "fingerprint": job.fingerprint}

    def folder(self, parameter: str, path: str) -> list[str]:
        """Return the files of a folder that the stage reads or writes."""
        return [f"{path}/{file}" for file in self.stage.parameters[parameter].files]

    def on_gpu(self, runtime: int, mem_mb: int = 8000) -> dict[str, Any]:
        """Return the resources of a job on GPUs: as many as training processes, none with ``device: cpu``."""
        return {"gpu": self._gpus, **growing(runtime, mem_mb)}

    def command(self, wildcards: Wildcards, input: Any, output: Any) -> str:
        """Return the command of a job, with every word quoted for the shell.

        The parameters ``input`` and ``output`` keep a changed command from triggering a re-run in Snakemake. The
        fingerprint decides about re-runs.
        """
        job = self._values(wildcards)
        for role, files in ((Role.INPUT, input), (Role.OUTPUT, output)):
            for parameter in self.stage.of_role(role):
                job[parameter.name] = self._files(parameter, _listed(files.get(parameter.name)), wildcards)
        if settings := self.settings(wildcards):
            job["settings"] = settings
        *words, text = self.stage.command(job)
        if len(text) < LONGEST:
            return shlex.join([*words, text])
        path = self.results / JOBS / f"{sha256_bytes(text.encode())[:16]}.json"
        if not path.exists():
            write_text(path, text)
        return shlex.join([*words, str(path)])

    def fingerprint(self, wildcards: Wildcards) -> str:
        """Everything that determines the outputs of a job except its declared inputs; of these, the names count."""
        inputs = [(each, self._value(each.name, wildcards)) for each in self.stage.of_role(Role.INPUT)]
        names = {each.name: names for each, value in inputs if (names := each.names(value))}
        made_of = fingerprint(self.stage, self._settings(wildcards), self._values(wildcards), self.results)
        return canonical_json({**made_of, "names": names})

    def _gpus(self, wildcards: Wildcards) -> int:
        if DEVICE not in self.stage.parameters or self.config.device == "cpu":
            return 0
        processes = self.stage.processes
        return 1 if processes is None else int(get_dotted(self.settings(wildcards), processes))

    def settings(self, wildcards: Wildcards) -> dict[str, Any]:
        """Return the settings of a job as plain values; empty for a stage without settings."""
        settings = self._settings(wildcards)
        return {} if settings is None else settings.canonical()

    def _settings(self, wildcards: Wildcards) -> StageSettings | None:
        model = self.stage.settings
        return None if model is None else model.from_config(self.config, wildcards)

    def _values(self, wildcards: Wildcards) -> dict[str, Any]:
        return {value.name: self._value(value.name, wildcards) for value in self.stage.of_role(Role.VALUE)}

    def _value(self, name: str, wildcards: Wildcards) -> Any:
        """Return the value bound to a name, else the experiment's device or the wildcard of this name, else None."""
        if name in self.bound:
            bound = self.bound[name]
            return bound(wildcards) if callable(bound) else bound
        return self.config.device if name == DEVICE else getattr(wildcards, name, None)

    def _files(self, parameter: Parameter, files: list[str], wildcards: Wildcards) -> Any:
        """Return the value of a parameter, with the paths that Snakemake gives; None without files."""
        if not files:
            return None
        if parameter.holds is dict:
            paths = iter(files)
            named: Mapping[str, str | list[str]] = self._value(parameter.name, wildcards)
            return {
                name: next(paths) if isinstance(each, str) else [next(paths) for _ in each]
                for name, each in named.items()
            }
        if parameter.holds is list:
            return [str(file) for file in files]
        return str(Path(files[0]).parent) if parameter.files else files[0]


def rule_stage(rule: Any) -> RuleStage | None:
    """Return the stage that a rule of Snakemake runs; None if it runs none."""
    return getattr(dict(rule.params.items()).get("command"), "__self__", None)


def growing(runtime: int, mem_mb: int = 4000) -> dict[str, Any]:
    """Return the memory and the minutes of a job, which grow with its attempts; the minutes to a day at most.

    An attempt may have run out of either.
    """
    return {
        "mem_mb": lambda wildcards, attempt: attempt * mem_mb,  # noqa: ARG005
        "runtime": lambda wildcards, attempt: min(attempt * runtime, max(runtime, _DAY)),  # noqa: ARG005
    }


def keep_off_gpus(rules: Iterable[Any], partition: Any) -> None:
    """Give the rules whose stages can use a GPU the partition of the others, as ``device: cpu`` asks."""
    for rule in rules:
        if (job := rule_stage(rule)) is not None and DEVICE in job.stage.parameters:
            rule.resources["slurm_partition"] = partition
            for name in {"gres", "gpu_model"} & rule.resources.keys():
                rule.resources[name] = None


def list_files(named: Any) -> Any:
    """Return the input of a rule for files by name, ``{"a": path, "b": [path, ...]}``, or for a function to these."""
    if callable(named):
        return lambda wildcards: list_files(named(wildcards))
    return [path for each in named.values() for path in ([each] if isinstance(each, str) else each)]


def one_of(names: Sequence[str]) -> str:
    """Return a wildcard constraint that matches any of ``names``; it matches nothing if there are no names."""
    return "|".join(map(re.escape, names)) if names else "(?!)"


def in_report(file: str, caption: str, category: str, **labels: str) -> Any:
    """Return a file for Snakemake's report; ``caption`` is a path from the file of the rule.

    Of tables in Markdown, the same in HTML is a second file: the report shows it where it only offers ``.md``.
    """
    from snakemake.io import report

    shown = report(
        file.removesuffix(".md") + ".html" if file.endswith(".md") else file,
        caption=caption,
        category=category,
        labels=labels,
    )
    return [file, shown] if file.endswith(".md") else shown


def check_rules(rules: Iterable[Any]) -> None:
    """Check that each rule of a workflow has the inputs, outputs and values of the stage that it runs."""
    for rule in rules:
        if (job := rule_stage(rule)) is None:
            continue
        for problem in _problems(rule, job):
            raise UserError(
                f"rule {rule.name} and stage {job.stage.name} do not agree: {problem}",
                remedy=f"correct the rule, or the signature in {job.stage.module.replace('.', '/')}.py",
            )


def _problems(rule: Any, job: RuleStage) -> Iterator[str]:
    stage, inputs = job.stage, dict(rule.input.items()).keys()
    with_names = {each.name for each in stage.of_role(Role.INPUT) if each.holds is dict}
    rules = {
        Role.INPUT: inputs,
        Role.OUTPUT: dict(rule.output.items()).keys(),
        Role.VALUE: job.bound.keys() - with_names,
    }
    for role, names in rules.items():
        known = {each.name: each.required for each in stage.of_role(role)}
        for name in sorted(names - known.keys()):
            yield f"the stage has no {role.name.lower()} '{name}'"
        given = names | rule.wildcard_names if role is Role.VALUE else names
        for name in sorted(name for name in known.keys() - given if known[name]):
            yield f"the rule has no {role.name.lower()} '{name}'"
    for name in sorted(with_names & inputs - job.bound.keys()):
        yield f"the rule does not say the names of '{name}'"


def _listed(files: Any) -> list[Any]:
    if isinstance(files, str) or callable(files):
        return [files]
    return [] if files is None else list(files)
