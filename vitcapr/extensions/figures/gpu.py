"""GPU use and memory during training (the paper's figure 4)."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from vitcapr.formats.training_files import GpuUse
from vitcapr.report.figures import style

_BINS = 300
"""Number of intervals per curve. A one-day training has 43,200 samples, so the figure shows mean and range per
interval."""


@style.styled
def gpu_use(trainings: Mapping[str, GpuUse]) -> Figure:
    """Use and memory of the whole GPU over each training; the legend has the device, the mean and the peak.

    Lines are means, shades the range, of stretches of the training. Trainings without samples, such as those on a CPU,
    are left out. If there are only such trainings, the figure says so.
    """
    sampled = {name: use for name, use in trainings.items() if len(use.samples)}
    if not sampled:
        figure = style.new_figure(style.PAGE_WIDTH, 0.5)
        figure.text(0.01, 0.5, "No training has samples of a GPU.", va="center")
        return figure
    height = 2.4 + style.LEGEND_ROW * len(sampled)
    figure = style.new_figure(style.PAGE_WIDTH, height)
    unit, seconds = _unit(max(float(use.samples["seconds"].max()) for use in sampled.values()))
    busy, memory = figure.subplots(1, 2, sharex=True)
    for number, use in enumerate(sampled.values()):
        time = use.samples["seconds"].to_numpy() / seconds
        _draw(busy, time, use.samples["gpu_percent"].to_numpy(), number)
        _draw(memory, time, use.samples["memory_gib"].to_numpy(), number)
    total = max(float(use.samples["memory_total_gib"].max()) for use in sampled.values())
    if np.isfinite(total):
        style.mark_level(memory, total, f"total {total:.0f} GiB", below=True)
    busy.set_ylim(0, 102)
    memory.set_ylim(bottom=0)
    for axes, title in ((busy, "GPU in use (%)"), (memory, "GPU memory in use (GiB)")):
        axes.set_title(title, loc="left")
        axes.set_xlabel(f"{unit} of training")
        axes.set_xlim(left=0)
        axes.grid(axis="y")
    labels = [f"{name}: {_in_words(use)}" for name, use in sampled.items()]
    handles = [Line2D([], [], label=label, **style.series(number)) for number, label in enumerate(labels)]
    figure.legend(handles=handles, loc="outside lower left")
    return figure


def _in_words(use: GpuUse) -> str:
    busy, memory = use.samples["gpu_percent"].mean(), use.samples["memory_gib"].max()
    known = [f"in use {busy:.0f}% on average"] if np.isfinite(busy) else []
    known += [f"at most {memory:.1f} GiB"] if np.isfinite(memory) else []
    return ", ".join([use.device, *known])


def _unit(longest: float) -> tuple[str, float]:
    """Return the unit of time for a training of ``longest`` seconds, and its seconds."""
    return next(
        (name, size)
        for name, size, least in (("hours", 3600, 3), ("minutes", 60, 3), ("seconds", 1, 0))
        if longest >= least * size
    )


def _draw(axes: Axes, time: NDArray[np.floating], values: NDArray[np.floating], number: int) -> None:
    known = np.isfinite(values)
    if not known.any():
        return
    look = style.series(number)
    parts = zip(*(np.array_split(array[known], min(_BINS, int(known.sum()))) for array in (time, values)), strict=True)
    middle, mean, low, high = np.array([(t.mean(), v.mean(), v.min(), v.max()) for t, v in parts]).T
    axes.fill_between(middle, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.plot(middle, mean, **look, markevery=max(1, len(middle) // 8))
