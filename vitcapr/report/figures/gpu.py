"""GPU use and memory during training (the paper's figure 4). For other devices the figure names the device."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from vitcapr.formats.training import GpuUse
from vitcapr.report.figures.layout import TEXT_LINE, wrap, write
from vitcapr.report.figures.style import FAINT, PAGE_WIDTH, SMALL_TEXT_SIZE, TEXT_SIZE, new_figure, series, styled

_BINS = 300
"""Number of intervals per curve. A one-day training has 43,200 samples, so the figure shows mean and range per
interval."""
_MARGIN = 0.1
_LEFT = 0.3  # inches


@styled
def gpu_use(trainings: Mapping[str, GpuUse]) -> Figure:
    """Use and memory of the whole GPU over each training, and below, in words, what each was trained on.

    Lines are means, shades the range, of stretches of the training. Trainings without samples are words alone.
    """
    said = [
        (number, line)
        for number, (name, use) in enumerate(trainings.items())
        for line in wrap(f"{name}: {_in_words(use)}", (PAGE_WIDTH - 0.6) * 72, TEXT_SIZE)
    ]
    words = (len(said) + 0.5) * TEXT_LINE
    sampled = {name: use for name, use in trainings.items() if len(use.samples)}
    panels = 2.4 if sampled else 0.0
    total = panels + words + 2 * _MARGIN
    above = (0, (words + _MARGIN) / total, 1, panels / total)
    figure = new_figure(PAGE_WIDTH, total, layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.04, rect=above))
    for number, (place, line) in enumerate(said):
        top = words - number * TEXT_LINE
        write(figure, line, _LEFT, top, size=TEXT_SIZE)
        name = list(trainings)[place]
        if name in sampled and (number == 0 or said[number - 1][0] != place):
            write(figure, "■", _MARGIN, top, color=series(place)["color"], size=TEXT_SIZE)
    if sampled:
        unit, seconds = _unit(max(float(use.samples["seconds"].max()) for use in sampled.values()))
        busy, full = figure.subplots(1, 2, sharex=True)
        for number, (name, use) in enumerate(trainings.items()):
            if name in sampled:
                time = use.samples["seconds"].to_numpy() / seconds
                _draw(busy, time, use.samples["gpu_percent"].to_numpy(), number)
                _draw(full, time, use.samples["memory_gib"].to_numpy(), number)
        most = max(float(use.samples["memory_total_gib"].max()) for use in sampled.values())
        if np.isfinite(most):
            full.axhline(most, color=FAINT, linewidth=0.8, linestyle=":")
            full.annotate(
                f"{most:.0f} GiB there are",
                (0, most),
                xycoords=("axes fraction", "data"),
                xytext=(3, -9),
                textcoords="offset points",
                fontsize=SMALL_TEXT_SIZE,
            )
        busy.set_ylim(0, 102)
        full.set_ylim(bottom=0)
        for axes, title in ((busy, "GPU in use (%)"), (full, "GPU memory in use (GiB)")):
            axes.set_title(title, loc="left")
            axes.set_xlabel(f"{unit} of training")
            axes.set_xlim(left=0)
            axes.grid(axis="y")
    return figure


def _in_words(use: GpuUse) -> str:
    if not len(use.samples):
        return use.device
    busy, memory = use.samples["gpu_percent"].mean(), use.samples["memory_gib"].max()
    known = [f"in use {busy:.0f}% on average"] if np.isfinite(busy) else []
    known += [f"at most {memory:.1f} GiB"] if np.isfinite(memory) else []
    return ", ".join([use.device, *known])


def _unit(longest: float) -> tuple[str, float]:
    """The unit of time for a training of ``longest`` seconds, and its seconds."""
    return next(
        (name, size)
        for name, size, least in (("hours", 3600, 3), ("minutes", 60, 3), ("seconds", 1, 0))
        if longest >= least * size
    )


def _draw(axes: Axes, time: NDArray[np.floating], values: NDArray[np.floating], number: int) -> None:
    known = np.isfinite(values)
    if not known.any():
        return
    look = series(number)
    parts = zip(*(np.array_split(array[known], min(_BINS, int(known.sum()))) for array in (time, values)), strict=True)
    middle, mean, low, high = np.array([(t.mean(), v.mean(), v.min(), v.max()) for t, v in parts]).T
    axes.fill_between(middle, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.plot(middle, mean, **look, markevery=max(1, len(middle) // 8))
