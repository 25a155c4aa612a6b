"""Lines of figures of caption lengths, by split or by language."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from vitcapr.report.figures import style

_LANGUAGES = {"en": "English", "zh": "Chinese"}


def language_name(language: str) -> str:
    """Return the name of a language code as a reader knows it; an unknown code as it is."""
    return _LANGUAGES.get(language, language)


def label_shares(axes: Axes, units: str, shares: str) -> None:
    """Label the axes of lengths in ``units`` and of shares in percent."""
    axes.set_xlabel(units)
    axes.set_ylabel(shares)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.grid(axis="y")


def plot_shares(axes: Axes, lengths: NDArray[np.integer], number: int, label: str) -> None:
    """Plot the share of each length from 0 to the longest, as line ``number``."""
    counts = np.bincount(np.asarray(lengths))
    axes.plot(
        np.arange(len(counts)), counts / counts.sum(), label=label, markersize=3, linewidth=1, **style.series(number)
    )
