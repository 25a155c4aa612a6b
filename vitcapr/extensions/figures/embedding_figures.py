"""Figures of the shared embedding space: histograms of cosines, t-SNE, and PCA of several systems."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from vitcapr.formats.embeddings import Embeddings
from vitcapr.report.direction import image_to_text
from vitcapr.report.figures import style
from vitcapr.report.figures.embedding_spaces import draw_components, draw_legend, mean_distance, tsne

PAIRS = 300
_LINES = "#AAAAAA"
_DOTS = (0, (1, 1))
_SPACES_A_ROW = 3


class Cosines(NamedTuple):
    """Cosines of captions with images.

    Captions with their own images (M,), images with the nearest wrong caption (N,), captions with a random wrong image
    (M,).
    """

    positive: NDArray[np.float32]
    hard: NDArray[np.float32]
    random: NDArray[np.float32]


def cosines(embedded: Embeddings, seed: int = 0) -> Cosines:
    """Return the cosines of all positives and of two kinds of negatives, the random ones by a seed."""
    images, captions, owner = embedded.images, embedded.captions, embedded.caption_image
    _, hard = image_to_text(embedded).nearest_cosines()
    # A step of 1 to N - 1 around the circle of images never comes back to a caption's own.
    step = np.random.default_rng(seed).integers(1, len(images), len(captions))
    other = (owner + step) % len(images)
    positive, random = (np.einsum("ij,ij->i", images[each], captions) for each in (owner, other))
    return Cosines(positive, hard[np.isfinite(hard)], random)


def overlap(one: NDArray[np.floating], other: NDArray[np.floating], edges: NDArray[np.floating]) -> float:
    """Return the area that two histograms of area 1 share: 0 for none, 1 for all of it."""
    shares = [np.histogram(values, edges)[0] / len(values) for values in (one, other)]
    return float(np.minimum(*shares).sum())


@style.styled
def cosine_histogram(pairs: Cosines, model: str) -> Figure:
    """Histograms of the cosines of positives, hardest negatives and random negatives (the paper's figure 19).

    The legend says what share of its area each kind of wrong pair has in common with the true ones.
    """
    figure = style.new_figure(style.COLUMN_WIDTH, 2.7)
    axes = figure.subplots()
    values = np.concatenate(pairs)
    edges = np.linspace(float(values.min()), max(float(values.max()), float(values.min()) + 1e-6), 61)
    kinds = (
        ("true pairs", pairs.positive, style.GREEN, "-"),
        ("hardest wrong, each image", pairs.hard, style.VERMILION, (0, (4, 1.5))),
        ("random wrong pairs", pairs.random, style.FAINT, (0, (1, 1.2))),
    )
    for name, cosine, color, line in kinds:
        label = f"{name} ({len(cosine):,}): mean {cosine.mean():.2f}"
        if cosine is not pairs.positive:
            label += f", overlap {overlap(pairs.positive, cosine, edges):.0%}"
        # Filled and outlined apart, so that the line's pattern tells the kinds apart without colour.
        axes.hist(cosine, edges.tolist(), density=True, histtype="stepfilled", color=color, alpha=0.2)
        look: dict[str, Any] = {"color": color, "linestyle": line, "linewidth": 1.2, "label": label}
        axes.hist(cosine, edges.tolist(), density=True, histtype="step", **look)
    axes.set_xlabel("cosine of image and caption")
    axes.set_ylabel("density")
    axes.set_xlim(edges[0], edges[-1] + (edges[1] - edges[0]))
    figure.legend(title=style.in_print(model), alignment="left", loc="outside upper left", handlelength=1.8)
    return figure


@style.styled
def spaces(systems: Mapping[str, Embeddings]) -> Figure:
    """PCA of the space of each system, one panel per system (the second paper's figure 3).

    Axes have the same scale in all panels, so that a cloud that is tighter looks tighter.
    """
    rows = -(-len(systems) // _SPACES_A_ROW)
    columns = min(len(systems), _SPACES_A_ROW)
    figure = style.new_figure(style.PAGE_WIDTH, 0.3 + rows * 2.5)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for number, (axes, (name, embedded)) in enumerate(zip(panels, systems.items(), strict=False)):
        first, second = draw_components(axes, embedded.images, embedded.captions, name, style.ORANGE)
        # Every panel has components of its own; numbers stand where there is no panel below or to the left.
        axes.set_title(
            f"{style.in_print(name)}\ndistance of the means {mean_distance(embedded):.2f}\n"
            f"variance {first} and {second}",
            loc="left",
            fontsize=style.SMALL_TEXT_SIZE,
        )
        lowest, leftmost = number + columns >= len(systems), number % columns == 0
        axes.set_xlabel("first component" if lowest else "")
        axes.set_ylabel("second component" if leftmost else "")
        axes.tick_params(bottom=lowest, labelbottom=lowest, left=leftmost, labelleft=leftmost)
    for axes in panels[len(systems) :]:
        axes.set_axis_off()
    draw_legend(figure, panels[0])
    return figure


@style.styled
def neighbourhoods(embedded: Embeddings, model: str) -> Figure:
    """t-SNE of the first 300 images, each with its first caption, a line between the two (the paper's figure 18).

    Distances between far points mean nothing in such a map; whether pairs are near does.
    """
    images, captions = first_pairs(embedded, PAIRS)
    places, perplexity = tsne(np.concatenate((embedded.images[images], embedded.captions[captions])))
    of_images, of_captions = places[: len(images)], places[len(images) :]
    span = np.ptp(places, axis=0)
    height = style.PAGE_WIDTH * float(np.clip(span[1] / span[0], 0.45, 0.75))
    figure = style.new_figure(style.PAGE_WIDTH, height + 0.5)
    axes = figure.subplots()
    lines = list(np.stack((of_images, of_captions), axis=1))
    axes.add_collection(LineCollection(lines, colors=_LINES, linewidths=0.7, linestyles=_DOTS, zorder=1))
    look: dict[str, Any] = {"s": 12, "linewidths": 0, "zorder": 2}
    axes.scatter(*of_images.T, color=style.BLUE, label=f"{len(images)} images", **look)
    axes.scatter(*of_captions.T, color=style.VERMILION, marker="s", label="a caption of each", **look)
    axes.plot([], [], color=_LINES, linewidth=0.9, linestyle=_DOTS, label="true pair")
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_axis_off()  # The axes of t-SNE mean nothing.
    title = f"{style.in_print(model)}: t-SNE from the principal components, perplexity {perplexity:.3g}"
    figure.legend(title=title, alignment="left", loc="outside upper left", ncols=3, handlelength=1.4, columnspacing=1.2)
    return figure


def first_pairs(embedded: Embeddings, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the first ``count`` images that have a caption, and of the first caption of each."""
    images, captions = np.unique(embedded.caption_image, return_index=True)
    return images[:count].astype(np.intp), captions[:count]
