"""Training curves: loss, scores and learning rate by epoch. Scores are times 100."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.formats.training import read_history
from vitcapr.report.figures import style

_DASHES = (0, (3, 1.5))
_TRAINING: dict[str, Any] = {
    **{"color": style.INK, "linestyle": _DASHES, "linewidth": 1.0},
    "label": "training, mean of the epoch",
}
_MIDDLE = -0.5
"""The mean over an epoch stands in its middle; what is measured after it, at its end."""


@dataclass(frozen=True)
class _Panel:
    """Columns of a history that share a panel: ``trained`` with a dashed and ``validated`` with a solid line.

    ``best`` finds the epoch that is best by ``validated``.
    """

    title: str
    trained: str = ""
    validated: str = ""
    best: Callable[[NDArray[np.floating]], np.integer] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.trained, self.validated)))


_RATE = "learning_rate"
_NAMES = {"color": "colour"}
"""Of columns of a history that a figure does not print as they are."""
_TIMES_100 = ("train_reward", "validation_cider")
"""Recalls are in percent in the history; these scores are not."""
PANELS = {
    "captioners": (
        _Panel("loss (nats per token)", "train_loss", "validation_loss", np.nanargmin),
        _Panel("reward in training (CIDEr-D)", "train_reward"),
        _Panel("CIDEr on validation", "", "validation_cider", np.nanargmax),
        _Panel("learning rate, end of epoch", "", _RATE),
    ),
    "retrievers": (
        _Panel("contrastive loss", "train_loss", "validation_loss", np.nanargmin),
        _Panel("recalls on validation, summed", "", "validation_rsum", np.nanargmax),
        _Panel("learning rate, end of epoch", "", _RATE),
    ),
    "finetuned_dual_encoders": (
        _Panel("training loss", "train_loss"),
        _Panel("validation loss", "", "validation_loss", np.nanargmin),
    ),
}
"""The panels of each kind of model. Losses of different objectives of retrievers are compared by their slope alone."""


def draw_histories(histories: Mapping[str, Path]) -> dict[str, Figure]:
    """Return a figure for each kind of model, by its kind.

    Args:
        histories: the histories by the kind and the name of the model, such as ``captioners/plain``.
    """
    kinds: dict[str, dict[str, pd.DataFrame]] = {}
    for model, path in histories.items():
        kind, _, name = model.partition("/")
        kinds.setdefault(kind, {})[name] = read_history(path)
    return {
        kind: training_curves(models, kind) if kind in PANELS else backbone_curves(*models.values())
        for kind, models in kinds.items()
    }


@style.styled
def training_curves(histories: Mapping[str, pd.DataFrame], kind: str = "captioners") -> Figure:
    """Training curves: one line style per quantity, one colour per model, one panel per group of columns.

    The paper's figure 3; figures 11 and 12 of Peng 2025. The best epoch by the score of a panel wears a star. Thin
    vertical lines stand where a phase of training begins.

    Args:
        histories: the rows of a history.csv by the model's name, with ``epoch`` and what :data:`PANELS` names.
        kind: of the models; a key of :data:`PANELS`.

    Raises:
        UserError: there is nothing to draw.
    """
    panels = [panel for panel in PANELS[kind] if any(_has(h, c) for h in histories.values() for c in panel.columns)]
    if not panels:
        raise UserError("no history has a column that can be drawn")
    handles = _handles(list(histories), any(panel.trained for panel in panels))
    columns = style.legend_columns([str(handle.get_label()) for handle in handles])
    legend_rows = -(-len(handles) // columns)
    across = 2 if len(panels) == 4 else len(panels)
    rows = -(-len(panels) // across)
    figure = style.new_figure(style.PAGE_WIDTH, 2.3 * rows + style.LEGEND_ROW * legend_rows)
    for panel, axes in zip(panels, figure.subplots(rows, across, sharex=True, squeeze=False).flat, strict=True):
        for number, history in enumerate(histories.values()):
            _draw_panel(axes, panel, history, _look(number, len(histories)))
        if panel.validated == _RATE:
            axes.set_ylim(bottom=0)
        _label(axes, panel.title)
    # A legend fills its columns one after the other; read line by line, the models come first.
    by_line = [handle for column in range(columns) for handle in handles[column::columns]]
    figure.legend(handles=by_line, loc="outside lower center", ncols=columns)
    return figure


def _draw_panel(axes: Axes, panel: _Panel, history: pd.DataFrame, look: dict[str, Any]) -> None:
    _draw(axes, history, panel.trained, _MIDDLE, color=look["color"], linestyle=_DASHES, linewidth=1.0)
    _draw(axes, history, panel.validated, **look)
    if panel.best is not None:
        _mark(axes, history, panel.validated, panel.best, look["color"])
    if panel.trained and any(_has(history, column) for column in panel.columns):
        _phases(axes, history)


@style.styled
def backbone_curves(history: pd.DataFrame) -> Figure:
    """Return the loss and the validation accuracies of the backbone that the workflow trains.

    Args:
        history: ``epoch``, ``train_loss``, ``validation_loss``; every column but these and ``learning_rate`` is a score
            of the validation split between 0 and 1.
    """
    scores = [c for c in history.columns if c not in ("epoch", "train_loss", "validation_loss", "learning_rate")]
    history = history.assign(**{score: 100 * history[score] for score in scores})
    figure = style.new_figure(style.PAGE_WIDTH, 2.6)
    losses, accuracies = figure.subplots(1, 2, sharex=True)
    _draw(losses, history, "train_loss", _MIDDLE, **_TRAINING)
    _draw(losses, history, "validation_loss", label="validation", color=style.INK)
    losses.legend()
    for number, score in enumerate(scores):
        _draw(accuracies, history, score, label=_NAMES.get(score, style.in_print(score)), **_look(number, len(scores)))
    accuracies.set_ylim(0, 102)
    # Beside the panel, because a score may be anywhere in it; in the order in which the lines end.
    lines = sorted(accuracies.get_lines(), key=lambda line: -float(np.asarray(line.get_ydata())[-1]))
    figure.legend(handles=lines, loc="outside right center")
    _label(losses, "loss")
    _label(accuracies, "scores on validation (%)")
    return figure


def _look(number: int, count: int) -> dict[str, Any]:
    """Return the style of line ``number``.

    Later lines are thinner, so that lines with equal values stay visible.
    """
    return {**style.series(number), "linewidth": 1.3 + 1.6 * (count - 1 - number) / max(count - 1, 1)}


def _label(axes: Axes, title: str) -> None:
    axes.set_xlabel("epoch")
    axes.set_title(title, loc="left")
    axes.tick_params(axis="x", labelbottom=True)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, nbins=6))
    axes.grid(axis="y")


def _has(history: pd.DataFrame, column: str) -> bool:
    return column in history and bool(np.isfinite(history[column].to_numpy(dtype=float)).any())


def _draw(axes: Axes, history: pd.DataFrame, column: str, shift: float = 0.0, **look: Any) -> None:
    if _has(history, column):
        spread = max(1, len(history) // 8)
        if len(history) == 1:  # a line through one point is invisible
            look = {"marker": "_", **look}
        axes.plot(history["epoch"].to_numpy() + shift, _values(history, column), markevery=spread, **look)


def _values(history: pd.DataFrame, column: str) -> NDArray[np.floating]:
    return history[column].to_numpy(dtype=float) * (100 if column in _TIMES_100 else 1)


def _mark(axes: Axes, history: pd.DataFrame, column: str, choose: Any, color: str) -> None:
    if _has(history, column):
        values = _values(history, column)
        best = int(choose(np.where(np.isfinite(values), values, np.nan)))
        star: dict[str, Any] = {"marker": "*", "markersize": 9, "markeredgewidth": 0.6, "markeredgecolor": "white"}
        axes.plot(history["epoch"].to_numpy()[best], values[best], color=color, linestyle="none", zorder=5, **star)


def _phases(axes: Axes, history: pd.DataFrame) -> None:
    if "phase" in history:
        begins = history["phase"].ne(history["phase"].shift()) & (history.index != history.index[0])
        for epoch in history["epoch"][begins]:
            axes.axvline(float(epoch) - 1, color=style.FAINT, linewidth=0.6, linestyle=":", zorder=0)


def _handles(names: list[str], with_training: bool) -> list[Line2D]:
    handles = [Line2D([], [], label=style.in_print(name), **style.series(number)) for number, name in enumerate(names)]
    if with_training:
        handles += [
            Line2D([], [], **_TRAINING),
            Line2D([], [], color=style.INK, label="validation"),
        ]
    return [
        *handles,
        Line2D([], [], color=style.INK, marker="*", markersize=8, linestyle="none", label="best by this score"),
    ]
