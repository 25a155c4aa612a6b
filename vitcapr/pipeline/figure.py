"""The declaration of a figure: its files, its inputs and its caption in the report."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # The experiment is a layer above: what draws gets one, and imports none.
    from vitcapr.experiment.experiment import Experiment as Experiment
else:
    Experiment = Any

MANIFEST = "results/{experiment}/data/manifest.json"


@dataclass(frozen=True)
class Figure:
    """The declaration from which the rule of a figure is made.

    Attributes:
        files: paths of the pictures below ``results/<experiment>/figures``, with wildcards, without the suffix of the
            format.
        inputs: the files that the figure reads, by the stage's parameters: a path, a list, a dictionary of files by
            their names, or a function of the wildcards that returns one of them.
        each: the wildcards of every figure that the experiment asks for.
        caption: the caption in the report.
        category, labels: the position in the report.
        values: values that are not wildcards, by the stage's parameters.
        tables: further outputs below ``results/<experiment>/figures``, by the stage's parameters.
        priority: the priority of the rule.
    """

    files: Callable[[Experiment], list[str]]
    inputs: Callable[[Experiment], dict[str, Any]]
    caption: str
    category: str
    labels: Mapping[str, str]
    each: Callable[[Experiment], Iterable[Mapping[str, str]]] = lambda _: [{}]
    values: Callable[[Experiment], dict[str, Any]] = lambda _: {}
    tables: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
