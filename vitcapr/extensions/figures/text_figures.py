"""Figures of word frequencies and of caption lengths by split."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from vitcapr.report.figures import style
from vitcapr.report.figures.lengths import label_shares, plot_shares


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
        plot_shares(axes, words, number, label)
    label_shares(axes, "words in a caption", "share of captions")
    # Above the lines: wherever it stood among them, some data set would run through it.
    figure.legend(loc="outside upper left", ncols=1)
    axes.set_ylim(bottom=0)
    return figure
