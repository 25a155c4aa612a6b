"""CIDEr-D, as COCO's evaluation has it."""

import math
from collections.abc import Sequence

import numpy as np
from pycocoevalcap.cider.cider import Cider

from vitcapr.metrics.bootstrap import Measure, mean_measure
from vitcapr.metrics.caption_metric import CaptionMetric


def cider(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Measure:
    """Return the mean over images of CIDEr-D of tokenised captions, document frequencies from these references.

    Vedantam et al., CIDEr: Consensus-based Image Description Evaluation (2015), as COCO's evaluation computes it:
    1.0 is what papers print as 100. One image alone scores 0; numbers of images are comparable only if equal.
    """
    _, scores = Cider().compute_score(
        {number: list(others) for number, others in enumerate(references)},
        {number: [candidate] for number, candidate in enumerate(candidates)},
    )
    assert not math.isnan(float(np.sum(scores)))
    return mean_measure(scores)


METRIC = CaptionMetric(
    measure=lambda captions: {"cider": cider(captions.tokenised, captions.tokenised_references)},
    protocol="cider:d,idf=refs",
)
