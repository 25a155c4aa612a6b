"""The decorator that makes the stage of a figure from the function that draws it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitcapr.config.report import FiguresConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.figure import Figure
from vitcapr.pipeline.stage import Out, Stage, stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.report.figures.style import Pages

    Pictures = Pages | Mapping[str, Pages]
    """One picture, or several by the names of their files."""
else:
    Pictures = Any


def example_choice(figures: FiguresConfig, count: int) -> dict[str, Any]:
    """The arguments of :class:`vitcapr.report.figures.examples.Choice` for ``count`` examples."""
    return {"count": count, "images": figures.examples_first, "words": figures.examples_words}


def attention_choice(figures: FiguresConfig) -> dict[str, Any]:
    """The same for the images whose attention is drawn."""
    count = max(figures.attention_images, len(figures.attention_first) + len(figures.attention_words))
    return {"count": count, "images": figures.attention_first, "words": figures.attention_words}


@dataclass(frozen=True)
class Drawing(Figure):
    """The declaration of a figure, as the decorator of a function from its inputs to :data:`Pictures`.

    The stage has the parameters of the function, and ``pictures``: the files to write.
    """

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
