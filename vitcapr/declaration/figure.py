"""What the workflow has to know of a figure: where it lies, what it is drawn from, and what the report says of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Experiment = Any
"""A :class:`vitcapr.workflow.experiment.Experiment`."""
Wildcards = Mapping[str, str]


def _nothing(_: Experiment) -> dict[str, Any]:
    return {}


def _once(_: Experiment) -> Iterable[Wildcards]:
    return [{}]


@dataclass(frozen=True)
class Figure:
    """The rule of a stage that draws.

    Attributes:
        files: the pictures below ``results/<experiment>/figures``, without the ending of their format, with wildcards.
        inputs: the inputs of the rule, by the stage's parameters.
        each: the wildcards of every one that the experiment asks for.
        caption: what the report says of it.
        category, subcategory, labels: where it stands in the report.
        bound: the values that are no wildcards, and the names of files that are read by name.
        sources: the user's own files that it reads.
        tables: further outputs by the stage's parameters, below ``results/<experiment>/figures``.
        priority, mem_mb, runtime: of the rule.
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
