"""Recall@K of a validation split, for the selection of the epoch. Ranks are computed as for the reported scores."""

import numpy as np

from vitcapr.metrics.ranks import rank_matches

_AT = (1, 5, 10)


def recalls(images: np.ndarray, captions: np.ndarray, caption_image: np.ndarray) -> dict[str, float]:
    """Recall@1/5/10 in percent, both directions, and their sum, rsum (0 to 600).

    Args:
        images: (N, E), captions: (M, E), grouped in the order of the images.
        caption_image: (M,) the image of each caption.
    """
    ranks = rank_matches(images, captions, caption_image)
    scores = {
        f"validation_{name}_recall_{k}": 100 * float(np.mean(side <= k))
        for name, side in (("i2t", ranks.i2t), ("t2i", ranks.t2i))
        for k in _AT
    }
    return {"validation_rsum": sum(scores.values()), **scores}
