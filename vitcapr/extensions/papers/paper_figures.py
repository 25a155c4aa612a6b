"""Figures that only papers print: PCA before and after training, bars of recalls, and lengths of cleaned texts."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from vitcapr.formats.embeddings import Embeddings
from vitcapr.report.direction import TITLES
from vitcapr.report.figures import style
from vitcapr.report.figures.embedding_spaces import draw_components, draw_legend, mean_distance
from vitcapr.report.figures.lengths import label_shares, language_name, plot_shares
from vitcapr.report.figures.recall import DEPTHS, PARTS, ScoresByName, percent

Features = tuple[NDArray[np.floating], NDArray[np.floating]]
"""(N, D) of images and (M, C) of captions."""
_BARS = 0.75
"""Share of the width of a group that its bars take."""


@style.styled
def principal_components(embedded: Embeddings, before: Features | None = None) -> Figure:
    """PCA of all images and captions in the shared space (the paper's figure 17).

    Args:
        before: features (N, D) of the same images and (M, C) of the same captions before training, drawn beside: where
            D is not C there is no common space yet, and each kind has directions of its own.
    """
    figure = style.new_figure(style.PAGE_WIDTH if before else style.COLUMN_WIDTH, 3.2)
    panels = figure.subplots(1, 2 if before else 1, squeeze=False)[0]
    if before:
        images, captions = (normalize(vectors.astype(np.float32)) for vectors in before)
        common = images.shape[1] == captions.shape[1]
        title = "before training" if common else "before training: two spaces, two pairs of directions"
        draw_components(panels[0], images, captions, title)
    title = f"{'after training: ' if before else ''}distance of the means {mean_distance(embedded):.2f}"
    draw_components(panels[-1], embedded.images, embedded.captions, title)
    draw_legend(figure, panels[-1])
    return figure


@style.styled
def recall_bars(retrievers: Mapping[str, ScoresByName]) -> Figure:
    """Recall@1, 5 and 10 of both directions in percent: a group of bars from 0 for each, a bar for each retriever.

    The vertical lines are intervals. Figure 2 of the BLIP-2 projection paper.
    """
    metrics = {f"{direction.upper()} R@{k}": f"{direction}_recall_{k}" for direction in TITLES for k in DEPTHS}
    figure = style.new_figure(style.PAGE_WIDTH, 2.6 + style.LEGEND_ROW * len(retrievers))
    axes = figure.subplots()
    width = _BARS / len(retrievers)
    for number, (name, scores) in enumerate(retrievers.items()):
        value, low, high = np.array([[percent(scores, m, p) for m in metrics.values()] for p in PARTS])
        place = np.arange(len(metrics)) + (number - (len(retrievers) - 1) / 2) * width
        axes.bar(place, value, width, color=style.series(number)["color"], label=style.in_print(name))
        axes.vlines(place, low, high, color=style.INK, linewidth=0.8)
    axes.set_xticks(range(len(metrics)), list(metrics))
    axes.set_ylim(bottom=0)
    axes.set_ylabel("recall (%)")
    axes.grid(axis="y")
    figure.legend(loc="outside lower left")
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
            plot_shares(axes, each, number, label)
        axes.set_title(f"{language_name(language)}: {len(raw):,} texts", loc="left")
        units = "characters in a text, without spaces" if language == "zh" else "words in a text"
        label_shares(axes, units, "share of texts")
        axes.legend(loc="upper right", borderaxespad=0)
        # Room for the legend above the lines, wherever their peak is.
        axes.set_ylim(0, 1.35 * axes.get_ylim()[1])
    return figure
