"""Points of the shared embedding space in two dimensions: t-SNE and principal components."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from vitcapr.formats.embeddings import Embeddings
from vitcapr.report.figures import style

PERPLEXITY = 30.0
"""As in the paper's figure 18."""
_STEPS = 500
"""Steps of t-SNE, after which the points lie still; scikit-learn's 1,000 take twice the time."""


def tsne(points: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Return a map (N, 2) of N points, and its perplexity.

    It starts from the principal components, with a fixed seed, on one thread: the same points give the same map.
    """
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    with threadpool_limits(1):
        places = TSNE(perplexity=perplexity, max_iter=_STEPS, init="pca", random_state=0).fit_transform(points)
    return places, perplexity


def draw_components(
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


def mean_distance(embedded: Embeddings) -> float:
    """Return the distance between the mean image and the mean caption."""
    return float(np.linalg.norm(embedded.images.mean(axis=0) - embedded.captions.mean(axis=0)))


def draw_legend(figure: Figure, panel: Axes) -> None:
    """Draw a legend of opaque and larger marks above the panels."""
    legend = figure.legend(handles=panel.collections[::-1], loc="outside upper left", ncols=2, markerscale=3)
    for handle in filter(None, legend.legend_handles):
        handle.set_alpha(1)
