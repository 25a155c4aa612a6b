"""The embedding space of a retrieval model as a map of its images."""

import numpy as np
from numpy.typing import NDArray

PERPLEXITY = 30.0
_STEPS = 500
_LEAST = 5
"""Of fewer images there is no map."""


def map_of(vectors: NDArray[np.float32]) -> NDArray[np.float64] | None:
    """t-SNE of N unit vectors: (N, 2) between 0 and 1, or None if there are too few or they are all the same.

    Near points are near in the space; distances between far points mean nothing. It starts from the principal
    components, with a fixed seed, on one thread: the same embeddings give the same map.
    """
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    if len(vectors) < _LEAST or np.ptp(vectors, axis=0).max() == 0:
        return None
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    with threadpool_limits(1):
        places = TSNE(perplexity=perplexity, max_iter=_STEPS, init="pca", random_state=0).fit_transform(vectors)
    low, high = places.min(axis=0), places.max(axis=0)
    scaled: NDArray[np.float64] = 0.5 + (places - (low + high) / 2) / max(float((high - low).max()), 1e-12)
    return scaled
