"""The declaration of a figure, and the decorator that makes its stage from the function that draws it."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitcapr.config.report import FiguresConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Out, Stage, stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:  # The experiment is a layer above: what draws gets one, and imports none.
    from vitcapr.experiment.experiment import Experiment as Experiment
    from vitcapr.report.figures.style import Pages

    Pictures = Pages | Mapping[str, Pages]
    """One picture, or several by the names of their files."""
else:
    Experiment = Pictures = Any

MANIFEST = "results/{experiment}/data/manifest.json"


def example_choice(figures: FiguresConfig, count: int) -> dict[str, Any]:
    """Return the arguments of :class:`vitcapr.report.figures.examples.Choice` for ``count`` examples."""
    return {"count": count, "images": figures.examples_first, "words": figures.examples_words}


def attention_choice(figures: FiguresConfig) -> dict[str, Any]:
    """Return the same for the images whose attention is drawn."""
    count = max(figures.attention_images, len(figures.attention_first) + len(figures.attention_words))
    return {"count": count, "images": figures.attention_first, "words": figures.attention_words}


@dataclass(frozen=True)
class Drawing:
    """Declaration of a figure, from which its rule is made.

    It decorates a function from the inputs to :data:`Pictures`. The stage has the parameters of the function, and
    ``pictures``: the files to write.

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

    def __call__(self, function: Callable[..., Pictures]) -> Stage:
        own = inspect.signature(function).parameters

        @wraps(function)
        def draw(report: Reporter, pictures: list[Path], **values: Any) -> None:
            from vitcapr.report.figures.style import save_pictures

            drawn = function(**values, report=report) if "report" in own else function(**values)
            figures = drawn if isinstance(drawn, Mapping) else {path.stem: drawn for path in pictures}
            save_pictures(figures, pictures, report)

        parameters = {name: each.replace(kind=Parameter.KEYWORD_ONLY) for name, each in own.items()}
        for name, kind in (("report", Reporter), ("pictures", list[Out[kinds.FigureFile]])):
            parameters[name] = Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind)
        draw.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
        return stage(figure=self)(draw)
