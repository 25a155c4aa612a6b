"""The rules of figures: one for every stage that declares a figure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vitcapr.experiment.names import one_of, unique
from vitcapr.pipeline.figure import Figure
from vitcapr.pipeline.rule import RuleStage
from vitcapr.pipeline.stage import Stage

FIGURES = "results/{experiment}/figures"


@dataclass(frozen=True)
class FigureRule:
    """The rule of one figure, for ``rules/figures.smk``."""

    stage: Stage
    figure: Figure
    experiment: Any

    @property
    def name(self) -> str:
        return self.stage.name

    @cached_property
    def inputs(self) -> dict[str, Any]:
        return self.figure.inputs(self.experiment)

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
        figure = self.figure
        return {
            "caption": "../workflow/report/figure.rst",
            "category": figure.category,
            "subcategory": figure.subcategory,
            "labels": figure.labels,
        }

    @cached_property
    def targets(self) -> list[str]:
        """The files that the experiment asks for."""
        name = self.experiment.config.experiment
        return [
            file.format(experiment=name, **wildcards)
            for wildcards in self.figure.each(self.experiment)
            for file in (*self.pictures, *self.tables.values())
        ]

    @property
    def wildcards(self) -> list[str]:
        """The names of the wildcards, without the experiment's."""
        files = [*self.figure.files(self.experiment), *self.tables.values()]
        return [name for name in unique(re.findall(r"{(\w+)}", " ".join(files))) if name != "experiment"]

    @property
    def constraints(self) -> dict[str, str]:
        """Which values each wildcard takes."""
        wanted = list(self.figure.each(self.experiment))
        return {name: one_of(unique(wildcards[name] for wildcards in wanted)) for name in self.wildcards}

    @property
    def log(self) -> str:
        of_job = ".".join(f"{{{name}}}" for name in self.wildcards)
        return f"results/{{experiment}}/logs/{self.name}{f'/{of_job}' if of_job else ''}.log"

    @property
    def params(self) -> dict[str, Any]:
        sources: dict[str, Any] = {}
        if self.figure.sources is not None:
            sources["sources"] = self.figure.sources(self.experiment)
        bound = self.figure.bound(self.experiment)
        return RuleStage(self.stage, self.experiment.config, self.experiment.results)(**sources, **bound) | {
            "caption": self._caption
        }

    @property
    def _caption(self) -> Callable[..., str]:
        def caption(wildcards: Any, threads: int) -> str:  # noqa: ARG001
            """The parameter ``threads`` keeps a changed caption from triggering a re-run in Snakemake."""
            named: Mapping[str, str] = {name: getattr(wildcards, name) for name in self.wildcards}
            return self.figure.caption.format(**named)

        return caption
