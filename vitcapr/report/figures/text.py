"""Figures of word frequencies and of caption lengths, by split or by language."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from vitcapr.report.figures import style

_LANGUAGES = {"en": "English", "zh": "Chinese"}


def language_name(language: str) -> str:
    """Return the name of a language code as a reader knows it; an unknown code as it is."""
    return _LANGUAGES.get(language, language)


@style.styled
def rank_frequency(kept: Sequence[int], rare: Mapping[int, int]) -> Figure:
    """Occurrences of each word by its rank, both logarithmic, with the threshold of the vocabulary marked.

    Args:
        kept: occurrences of each word of the vocabulary, specials left out.
        rare: how many words outside it were seen so often.
    """
    inside = np.sort(np.asarray(kept))[::-1]
    outside = np.array([count for count in sorted(rare, reverse=True) for _ in range(rare[count])], dtype=np.int64)
    tokens = int(inside.sum() + outside.sum())
    figure = style.new_figure(style.COLUMN_WIDTH, 2.5)
    axes = figure.subplots()
    label = f"in the vocabulary: {len(inside):,} words and its signs,\n{inside.sum() / tokens:.1%} of running words"
    axes.loglog(np.arange(1, len(inside) + 1), inside, color=style.BLUE, linewidth=2, label=label)
    if len(outside):
        ranks, counts = np.arange(len(inside), len(inside) + len(outside) + 1), np.concatenate((inside[-1:], outside))
        label = f"too rare: {len(outside):,} words,\n{outside.sum() / tokens:.1%} of running words"
        axes.loglog(ranks, counts, color=style.VERMILION, linewidth=2, linestyle=(0, (2, 1)), label=label)
    style.mark_level(axes, int(inside[-1]), f"rarest word kept: {inside[-1]:,} times")
    axes.set_xlabel("rank of the word")
    axes.set_ylabel("occurrences")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.legend(loc="upper right", handlelength=1.6, borderaxespad=0)
    return figure


@style.styled
def caption_lengths(lengths: Mapping[str, NDArray[np.integer]]) -> Figure:
    """Return the share of captions of each number of words, a line for each split.

    Args:
        lengths: words in each caption (start and end not counted) by split; splits without captions are left out.
    """
    figure = style.new_figure(style.COLUMN_WIDTH, 2.5)
    axes = figure.subplots()
    for number, (split, words) in enumerate((s, w) for s, w in lengths.items() if len(w)):
        name = "in no split" if split == "none" else split
        label = f"{name}: {len(words):,} captions, mean {np.mean(words):.1f}, longest {np.max(words)}"
        _plot_shares(axes, words, number, label)
    _label(axes, "words in a caption", "share of captions")
    # Above the lines: wherever it stood among them, some data set would run through it.
    figure.legend(loc="outside upper left", ncols=1)
    axes.set_ylim(bottom=0)
    return figure


@style.styled
def lengths_by_language(lengths: Mapping[str, tuple[NDArray[np.integer], NDArray[np.integer]]]) -> Figure:
    """Draw the share of texts of each length before and after cleaning, a panel for each language.

    Figure 8 of Peng 2025.

    Args:
        lengths: by language, the length of each raw text and of the same texts cleaned; of Chinese in characters, else
            in words.
    """
    figure = style.new_figure(style.COLUMN_WIDTH, 0.3 + 2.2 * len(lengths))
    for axes, (language, (raw, cleaned)) in zip(
        figure.subplots(len(lengths), squeeze=False)[:, 0], lengths.items(), strict=True
    ):
        for number, (name, each) in enumerate((("raw", raw), ("cleaned", cleaned))):
            label = f"{name}: median {np.median(each):g}, mean {np.mean(each):.1f}, longest {np.max(each)}"
            _plot_shares(axes, each, number, label)
        axes.set_title(f"{language_name(language)}: {len(raw):,} texts", loc="left")
        units = "characters in a text, without spaces" if language == "zh" else "words in a text"
        _label(axes, units, "share of texts")
        axes.legend(loc="upper right", borderaxespad=0)
        # Room for the legend above the lines, wherever their peak is.
        axes.set_ylim(0, 1.35 * axes.get_ylim()[1])
    return figure


def _label(axes: Axes, units: str, shares: str) -> None:
    axes.set_xlabel(units)
    axes.set_ylabel(shares)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(PercentFormatter(xmax=1))
    axes.grid(axis="y")


def _plot_shares(axes: Axes, lengths: NDArray[np.integer], number: int, label: str) -> None:
    """Plot the share of each length from 0 to the longest, as line ``number``."""
    counts = np.bincount(np.asarray(lengths))
    axes.plot(
        np.arange(len(counts)), counts / counts.sum(), label=label, markersize=3, linewidth=1, **style.series(number)
    )
