"""Training curves: loss, scores and learning rate by epoch. Scores are times 100."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.formats.model import read_card
from vitcapr.formats.training_files import read_history
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

    ``relative``: each model's values are divided by its first validated value, for losses of different sizes.
    """

    title: str
    trained: str = ""
    validated: str = ""
    relative: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.trained, self.validated)))


_RATE = "learning_rate"
_NAMES = {"color": "colour"}
"""Names of columns of a history that a figure prints otherwise."""
_TIMES_100 = ("train_reward", "validation_cider")
"""Recalls are in percent in the history; these scores are not."""
PANELS = {
    "captioners": (
        _Panel("loss (nats per token)", "train_loss", "validation_loss"),
        _Panel("reward in training (CIDEr-D)", "train_reward"),
        _Panel("CIDEr on validation", "", "validation_cider"),
        _Panel("learning rate, end of epoch", "", _RATE),
    ),
    "retrievers": (
        _Panel("loss (validation after epoch 1: 1)", "train_loss", "validation_loss", relative=True),
        _Panel("recalls on validation, summed", "", "validation_rsum"),
        _Panel("learning rate, end of epoch", "", _RATE),
    ),
}
"""The panels of each kind of model. The losses of retrievers differ in size with their objective."""
LOSSES = (_Panel("training loss", "train_loss"), _Panel("validation loss", "", "validation_loss"))
"""The panels of models of other kinds."""
Best = tuple[str, int]
"""The column of the history that chose the weights of a model, and the epoch."""


def read_best(cards: Mapping[str, Path]) -> dict[str, Best]:
    """Read from their cards which score chose the weights of models, and of which epoch they are."""
    read = {name: read_card(path) for name, path in cards.items()}
    return {name: (score, card["best_epoch"]) for name, card in read.items() for score in card["best_score"]}


def draw_histories(histories: Mapping[str, Path], cards: Mapping[str, Path]) -> dict[str, Figure]:
    """Return a figure for each kind of model, by its kind.

    Args:
        histories: the histories by the kind and the name of the model, such as ``captioners/plain``.
        cards: the cards of models, by the same names.
    """
    best = read_best(cards)
    kinds: dict[str, dict[str, pd.DataFrame]] = {}
    for model, path in histories.items():
        kind, _, name = model.partition("/")
        kinds.setdefault(kind, {})[name] = read_history(path)
    return {
        kind: training_curves(models, kind, {name: best[key] for name in models if (key := f"{kind}/{name}") in best})
        if kind != "backbones"
        else backbone_curves(*models.values())
        for kind, models in kinds.items()
    }


@style.styled
def training_curves(
    histories: Mapping[str, pd.DataFrame],
    kind: str = "captioners",
    best: Mapping[str, Best] = MappingProxyType({}),
) -> Figure:
    """Training curves: one line style per quantity, one colour per model, one panel per group of columns.

    The paper's figure 3; figures 11 and 12 of Peng 2025. A star marks the epoch whose weights are used,
    on the score that chose it. Thin vertical lines stand where a phase of training begins.

    Args:
        histories: the rows of a history.csv by the model's name, with ``epoch`` and what :data:`PANELS` names.
        kind: of the models; for a kind that :data:`PANELS` does not have, :data:`LOSSES` are drawn.
        best: of the models whose best epoch is known.

    Raises:
        UserError: there is nothing to draw.
    """
    panels = [
        panel
        for panel in PANELS.get(kind, LOSSES)
        if any(_has(h, c) for h in histories.values() for c in panel.columns)
    ]
    if not panels:
        raise UserError("no history has a column that can be drawn")
    handles = _handles(list(histories), any(panel.trained for panel in panels), bool(best))
    columns = style.legend_columns([str(handle.get_label()) for handle in handles])
    legend_rows = -(-len(handles) // columns)
    across = 2 if len(panels) == 4 else len(panels)
    rows = -(-len(panels) // across)
    figure = style.new_figure(style.PAGE_WIDTH, 2.3 * rows + style.LEGEND_ROW * legend_rows)
    for panel, axes in zip(panels, figure.subplots(rows, across, sharex=True, squeeze=False).flat, strict=True):
        for number, (name, history) in enumerate(histories.items()):
            _draw_panel(axes, panel, history, style.series(number), best.get(name))
        if panel.validated == _RATE:
            axes.set_ylim(bottom=0)
        _label(axes, panel.title)
    # A legend fills its columns one after the other; read line by line, the models come first.
    by_line = [handle for column in range(columns) for handle in handles[column::columns]]
    figure.legend(handles=by_line, loc="outside lower center", ncols=columns)
    return figure


def _draw_panel(axes: Axes, panel: _Panel, history: pd.DataFrame, look: dict[str, Any], best: Best | None) -> None:
    if panel.relative and _has(history, panel.validated):
        first = history[panel.validated].dropna().iloc[0] or np.nan  # nothing is relative to 0
        history = history.assign(**{column: history[column] / first for column in panel.columns if column in history})
    _draw(axes, history, panel.trained, _MIDDLE, color=look["color"], linestyle=_DASHES, linewidth=1.0)
    _draw(axes, history, panel.validated, **look)
    if best is not None and best[0] == panel.validated:
        _mark(axes, history, *best, look["color"])
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
        _draw(accuracies, history, score, label=_NAMES.get(score, style.in_print(score)), **style.series(number))
    accuracies.set_ylim(0, 102)
    # Beside the panel, because a score may be anywhere in it; in the order in which the lines end.
    lines = sorted(accuracies.get_lines(), key=lambda line: -float(np.asarray(line.get_ydata())[-1]))
    figure.legend(handles=lines, loc="outside right center")
    _label(losses, "loss")
    _label(accuracies, "scores on validation (%)")
    return figure


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


def _mark(axes: Axes, history: pd.DataFrame, column: str, epoch: int, color: str) -> None:
    at = history["epoch"].to_numpy() == epoch
    star: dict[str, Any] = {"marker": "*", "markersize": 10, "markeredgewidth": 0.6, "markeredgecolor": "white"}
    axes.plot(history["epoch"].to_numpy()[at], _values(history, column)[at], color=color, ls="none", zorder=5, **star)


def _phases(axes: Axes, history: pd.DataFrame) -> None:
    if "phase" in history:
        begins = history["phase"].ne(history["phase"].shift()) & (history.index != history.index[0])
        for epoch in history["epoch"][begins]:
            axes.axvline(float(epoch) - 1, color=style.FAINT, linewidth=0.6, linestyle=":", zorder=0)


def _handles(names: list[str], with_training: bool, with_star: bool) -> list[Line2D]:
    handles = [Line2D([], [], label=style.in_print(name), **style.series(number)) for number, name in enumerate(names)]
    if with_training:
        handles += [
            Line2D([], [], **_TRAINING),
            Line2D([], [], color=style.INK, label="validation"),
        ]
    if with_star:
        star: dict[str, Any] = {"color": style.INK, "marker": "*", "markersize": 8, "linestyle": "none"}
        handles.append(Line2D([], [], label="the epoch whose weights are used", **star))
    return handles
