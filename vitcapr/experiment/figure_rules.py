"""The rules of figures: one for every stage that declares a figure."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vitcapr.config.experiment import unique
from vitcapr.pipeline.rule import EXPERIMENT, RuleStage, list_files, one_of
from vitcapr.pipeline.stage import Stage

if TYPE_CHECKING:
    from vitcapr.experiment.experiment import Experiment
    from vitcapr.stages._drawing import Drawing

FIGURES = f"{EXPERIMENT}/figures"


@dataclass(frozen=True)
class FigureRule:
    """The rule of one figure, for ``rules/figures.smk``."""

    stage: Stage
    figure: "Drawing"
    experiment: "Experiment"

    @cached_property
    def _files(self) -> dict[str, Any]:
        return self.figure.inputs(self.experiment)

    @property
    def _named(self) -> dict[str, Any]:
        """The files with names, by parameter."""
        return {name: self._files[name] for name, each in self.stage.parameters.items() if each.holds is dict}

    @property
    def inputs(self) -> dict[str, Any]:
        return self._files | {name: list_files(files) for name, files in self._named.items()}

    @cached_property
    def pictures(self) -> list[str]:
        """The path patterns of every picture in each format."""
        formats = unique(self.experiment.config.figures.formats)
        return [f"{FIGURES}/{file}.{suffix}" for file in self.figure.files(self.experiment) for suffix in formats]

    @property
    def tables(self) -> dict[str, str]:
        return {name: f"{FIGURES}/{file}" for name, file in self.figure.tables.items()}

    @property
    def in_report(self) -> dict[str, Any]:
        """The arguments of Snakemake's report(); the rule's param ``caption`` holds the caption."""
        caption = "../workflow/report/figure.rst"
        return {"caption": caption, "category": self.figure.category, "labels": self.figure.labels}

    @cached_property
    def targets(self) -> list[str]:
        """The files that the experiment asks for."""
        return [
            file.format(experiment=self.experiment.name, **wildcards)
            for wildcards in self.figure.each(self.experiment)
            for file in (*self.pictures, *self.tables.values())
        ]

    @property
    def wildcards(self) -> list[str]:
        """The names of the wildcards, without the experiment's."""
        files = " ".join([*self.figure.files(self.experiment), *self.tables.values()])
        return [name for name in unique(re.findall(r"{(\w+)}", files)) if name != "experiment"]

    @property
    def constraints(self) -> dict[str, str]:
        """Return the values that each wildcard takes."""
        each = list(self.figure.each(self.experiment))
        return {name: one_of(unique(wildcards[name] for wildcards in each)) for name in self.wildcards}

    @property
    def log(self) -> str:
        job = ".".join(f"{{{name}}}" for name in self.wildcards)
        return f"{EXPERIMENT}/logs/{self.stage.name}{f'/{job}' if job else ''}.log"

    @property
    def params(self) -> dict[str, Any]:
        stage = RuleStage(self.stage, self.experiment.config, self.experiment.results)
        return {**stage(**self.figure.values(self.experiment), **self._named), "caption": self.caption}

    def caption(self, wildcards: Any, threads: int) -> str:  # noqa: ARG002
        """Return the parameter ``threads`` keeps a changed caption from triggering a re-run in Snakemake."""
        return self.figure.caption.format(**{name: getattr(wildcards, name) for name in self.wildcards})
