"""The declaration of a figure: its files, its inputs and its caption in the report."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Experiment = Any
"""A :class:`vitcapr.experiment.experiment.Experiment`."""
Wildcards = Mapping[str, str]


def _nothing(_: Experiment) -> dict[str, Any]:
    return {}


def _once(_: Experiment) -> Iterable[Wildcards]:
    return [{}]


@dataclass(frozen=True)
class Figure:
    """The declaration from which the rule of a figure is made.

    Attributes:
        files: paths of the pictures below ``results/<experiment>/figures``, with wildcards, without the suffix of the
            format.
        inputs: the inputs of the rule, by the stage's parameters.
        each: the wildcards of every figure that the experiment asks for.
        caption: the caption in the report.
        category, subcategory, labels: the position in the report.
        bound: values that are not wildcards, and the names of files that are passed by name.
        sources: the user's files that the figure reads.
        tables: further outputs below ``results/<experiment>/figures``, by the stage's parameters.
        priority, mem_mb, runtime: the priority and the resources of the rule.
    """

    files: Callable[[Experiment], list[str]]
    inputs: Callable[[Experiment], dict[str, Any]]
    caption: str
    category: str
    labels: Mapping[str, str]
    subcategory: str | None = None
    each: Callable[[Experiment], Iterable[Wildcards]] = _once
    bound: Callable[[Experiment], dict[str, Any]] = _nothing
    sources: Callable[[Experiment], Callable[[Any], Mapping[str, Path]]] | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    mem_mb: int = 2000
    runtime: int = 15
