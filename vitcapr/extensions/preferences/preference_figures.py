"""The figures of the questions: rows of names with a few numbers and their intervals."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitcapr.extensions.preferences.compositional import CHANCE
from vitcapr.extensions.preferences.judgments import VARIANTS, Agreement
from vitcapr.files import write_text
from vitcapr.formats.containers import frame_to_csv
from vitcapr.formats.page import write_page
from vitcapr.formats.tables import Table, to_page
from vitcapr.metrics.labels import COLUMNS
from vitcapr.report.figures.style import COLUMN_WIDTH, FAINT, MARKERS, SERIES, new_figure, save_figure, styled

_LEAST, _EACH, _FILLED = 0.24, 0.1, 0.78
"""Inches that a row takes at least and for each number; the share of a row over which its numbers are spread."""


def write_results(folder: Path, page: tuple[str, Sequence[Table], str], figure: Figure, **frames: pd.DataFrame) -> None:
    """Write each frame to ``NAME.csv``, and a page of tables with the figure, whose name is that of the first frame.

    Args:
        page: its title, tables and a paragraph.
    """
    for name, frame in frames.items():
        write_text(folder / f"{name}.csv", frame_to_csv(frame))
    name, (title, tables, words) = next(iter(frames)), page
    for suffix in ("pdf", "png"):
        save_figure(figure, folder / f"{name}.{suffix}")
    home = "../index.html" if (folder.parent / "index.html").is_file() else ""
    files = [folder / f"tables.{suffix}" for suffix in ("md", "html")]
    write_page(files, f"{to_page(tables, title, words)}\n![{title}]({name}.png)\n", home)


@styled
def draw_agreement(agreements: Agreement) -> Figure:
    """tau-b and tau-c of each metric, times 100, with the 95 % intervals over the images; the best metric first."""
    names = agreements.taus.groupby("metric")["tau"].mean().sort_values().index.tolist()
    each = {f"tau-{variant}": agreements.taus[agreements.taus["variant"] == variant] for variant in VARIANTS}
    series = {label: rows.set_index("metric").rename(columns={"tau": "value"}) for label, rows in each.items()}
    figure, axes = _rows(names, series)
    axes.set_yticks(range(len(names)), [COLUMNS[name].label for name in names])
    axes.set_xlabel("Kendall's tau with human ratings, times 100")
    return figure


@styled
def draw_foils(accuracies: pd.DataFrame) -> Figure:
    """Return the accuracy of each scorer on each split in percent, with the 95 % intervals; a line at chance."""
    names = list(dict.fromkeys(accuracies["split"]))[::-1]
    frame = accuracies.rename(columns={"accuracy": "value"})
    series = {str(scorer): rows.set_index("split") for scorer, rows in frame.groupby("scorer", sort=False)}
    figure, axes = _rows(names, series)
    axes.axvline(100 * CHANCE, color=FAINT, linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("captions preferred to their foils (%); dashed: chance")
    return figure


def _rows(names: Sequence[str], series: Mapping[str, pd.DataFrame]) -> tuple[Figure, Axes]:
    """Return a row a name from below; frames have ``value, low, high`` by name."""
    height = 0.9 + max(_LEAST, _EACH * len(series)) * len(names)
    figure = new_figure(1.5 * COLUMN_WIDTH, height)
    axes = figure.subplots()
    for number, (label, frame) in enumerate(series.items()):
        value, low, high = (100 * frame.loc[list(names), column].to_numpy() for column in ("value", "low", "high"))
        spread = np.maximum(np.stack([value - low, high - value]), 0)
        places = np.arange(len(names)) + _FILLED / (len(series) + 1) * ((len(series) - 1) / 2 - number)
        mark, colour = MARKERS[number % len(MARKERS)], SERIES[number % len(SERIES)]
        axes.errorbar(value, places, xerr=spread, label=label, fmt=mark, color=colour, linewidth=1)
    axes.grid(axis="x")
    figure.legend(loc="outside lower center", ncols=3)
    return figure, axes
