"""Figures of the shared embedding space: PCA, t-SNE and histograms of cosines."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from vitcapr.formats.embeddings import Embeddings
from vitcapr.report.direction import image_to_text
from vitcapr.report.figures import style

PAIRS = 300
PERPLEXITY = 30.0
"""Both as in the paper's figure 18."""
_STEPS = 500
"""Of t-SNE: so many points lie still by then, and scikit-learn's 1,000 take twice the time."""
_LINES = "#AAAAAA"
_DOTS = (0, (1, 1))
_SPACES_A_ROW = 3


Features = tuple[NDArray[np.floating], NDArray[np.floating]]
"""(N, D) of images and (M, C) of captions."""


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
        _draw_components(panels[0], images, captions, title)
    title = f"{'after training: ' if before else ''}distance of the means {_gap(embedded):.2f}"
    _draw_components(panels[-1], embedded.images, embedded.captions, title)
    _draw_legend(figure, panels[-1])
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
        first, second = _draw_components(axes, embedded.images, embedded.captions, name, style.ORANGE)
        # Every panel has components of its own; numbers stand where there is no panel below or to the left.
        axes.set_title(
            f"{style.in_print(name)}\ndistance of the means {_gap(embedded):.2f}\nvariance {first} and {second}",
            loc="left",
            fontsize=style.SMALL_TEXT_SIZE,
        )
        lowest, leftmost = number + columns >= len(systems), number % columns == 0
        axes.set_xlabel("first component" if lowest else "")
        axes.set_ylabel("second component" if leftmost else "")
        axes.tick_params(bottom=lowest, labelbottom=lowest, left=leftmost, labelleft=leftmost)
    for axes in panels[len(systems) :]:
        axes.set_axis_off()
    _draw_legend(figure, panels[0])
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


def tsne(points: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Return a map (N, 2) of N points, and its perplexity.

    It starts from the principal components, with a fixed seed, on one thread: the same points give the same map.
    """
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    with threadpool_limits(1):
        places = TSNE(perplexity=perplexity, max_iter=_STEPS, init="pca", random_state=0).fit_transform(points)
    return places, perplexity


def first_pairs(embedded: Embeddings, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the first ``count`` images that have a caption, and of the first caption of each."""
    images, captions = np.unique(embedded.caption_image, return_index=True)
    return images[:count].astype(np.intp), captions[:count]


def _draw_components(
    axes: Axes, images: NDArray[np.float32], captions: NDArray[np.float32], title: str, color: str = style.GREEN
) -> tuple[str, str]:
    """Draw both clouds on their first two components, with labels; returns their shares of the variance.

    Args:
        color: of the captions, as the papers have it: green in figure 17 of ViTCap-R, orange in figure 3 of BLIP-2.
    """
    clouds = (("captions", captions, color, "s"), ("images", images, style.BLUE, "o"))
    if images.shape[1] == captions.shape[1]:
        together = _analysis(np.concatenate((images, captions)))
        analyses = [together, together]
        shares = [f"{share:.1%}" for share in together.explained_variance_ratio_]
    else:
        analyses = [_analysis(captions), _analysis(images)]
        ratios = [analysis.explained_variance_ratio_ for analysis in analyses]
        shares = [f"captions {one:.1%}, images {other:.1%}" for one, other in zip(*ratios, strict=True)]
    for analysis, (name, vectors, color, marker) in zip(analyses, clouds, strict=True):
        look: dict[str, Any] = {"color": color, "marker": marker, "label": f"{len(vectors):,} {name}"}
        across, up = analysis.transform(vectors).T
        axes.scatter(across, up, s=3, alpha=0.45, linewidths=0, rasterized=True, **look)
    axes.set_title(title, loc="left")
    axes.set_xlabel(f"first component ({shares[0]} of the variance)")
    # In two lines: of two spaces it would be longer than the figure is high.
    axes.set_ylabel(f"second component\n({shares[1]} of the variance)")
    return shares[0], shares[1]


def _analysis(vectors: NDArray[np.float32]) -> PCA:
    return PCA(2, svd_solver="covariance_eigh").fit(vectors)


def _gap(embedded: Embeddings) -> float:
    return float(np.linalg.norm(embedded.images.mean(axis=0) - embedded.captions.mean(axis=0)))


def _draw_legend(figure: Figure, panel: Axes) -> None:
    """Draw a legend of opaque and larger marks above the panels."""
    legend = figure.legend(handles=panel.collections[::-1], loc="outside upper left", ncols=2, markerscale=3)
    for handle in filter(None, legend.legend_handles):
        handle.set_alpha(1)
