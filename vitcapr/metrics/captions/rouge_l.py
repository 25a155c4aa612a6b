"""ROUGE-L, as COCO's evaluation has it."""

from collections.abc import Sequence

from pycocoevalcap.rouge.rouge import Rouge

from vitcapr.metrics.bootstrap import Measure, mean_measure
from vitcapr.metrics.caption_metric import CaptionMetric


def rouge_l(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Measure:
    """Return the mean over images of ROUGE-L with beta 1.2 of tokenised captions (Lin, 2004)."""
    scorer = Rouge()
    return mean_measure([scorer.calc_score([c], list(r)) for c, r in zip(candidates, references, strict=True)])


METRIC = CaptionMetric(
    measure=lambda captions: {"rouge_l": rouge_l(captions.tokenised, captions.tokenised_references)},
    protocol="rouge_l:beta=1.2",
)
