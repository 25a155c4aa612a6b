"""All caption metrics, and the scores of a split's captions against its references by them."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from vitcapr.errors import UserError
from vitcapr.formats.scores import Score
from vitcapr.loader import load_part, part_names
from vitcapr.metrics.bootstrap import Measure, interval_protocol, plain_score, score_of
from vitcapr.metrics.caption_metric import Caption, CaptionMetric, TokenisedCaptions
from vitcapr.metrics.java import tokenize_all, tokenizer_name

_FIRST = ("bleu", "meteor", "rouge_l", "cider", "spice", "diversity")
"""Others follow by name."""


@cache
def caption_metrics() -> dict[str, CaptionMetric]:
    """Return every metric of captions of the package, and every plugin, by its name."""
    return {name: load_part("METRIC", name) for name in metric_names()}


def metric_names() -> list[str]:
    """Return the names of the metrics, in the order of their scores."""
    names = part_names("METRIC")
    return sorted(names, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))


class ScoredCaptions(NamedTuple):
    scores: dict[str, Score]
    per_image: pd.DataFrame
    """A row an image: its caption, each score of it alone, and the statistics of scores of a corpus."""
    protocol: str
    """How the numbers were made; without it they cannot be compared with anyone's."""


def select_metrics(names: Sequence[str]) -> list[CaptionMetric]:
    """Return the metrics of these names, in the order of all.

    Raises:
        UserError: there is no such metric, or what it needs is not installed.
    """
    if unknown := set(names) - set(metric_names()):
        raise UserError(f"no metric is called '{min(unknown)}'", remedy=f"there are {', '.join(metric_names())}")
    if not names:
        raise UserError("there is no metric to score by", remedy="chair, meteor and spice score English only")
    metrics = [load_part("METRIC", name) for name in metric_names() if name in names]
    for metric in metrics:
        metric.check()
    return metrics


def score_captions(
    metrics: Sequence[CaptionMetric],
    written: Sequence[str],
    references: Mapping[str, Sequence[str]],
    *,
    split: str,
    language: str,
    samples: int,
    seed: int,
    training: Callable[[], Sequence[str]] = list,
    paraphrases: Path | None = None,
    instances: Mapping[str, frozenset[str]] | None = None,
) -> ScoredCaptions:
    """Return the scores of one caption for each image, in the order of ``references``, the raw references of each.

    See :class:`~vitcapr.metrics.caption_metric.TokenisedCaptions`; ``samples`` and ``seed`` are of the intervals.
    """
    candidates = [Caption(image, text) for image, text in zip(references, written, strict=True)]
    words, reference_words = tokenize_all(candidates, references, language)
    captions = TokenisedCaptions(words, reference_words, written, training, paraphrases, instances or {}, language)
    values = {name: value for metric in metrics for name, value in metric.measure(captions).items()}
    scores = {
        name: score_of(value, samples, seed) if isinstance(value, Measure) else plain_score(value, len(written))
        for name, value in values.items()
    }
    measures = {name: value for name, value in values.items() if isinstance(value, Measure)}
    rows = pd.DataFrame({"image_id": list(references), "caption": written, "tokens": words})
    for name, measure in measures.items():
        rows[name] = measure.per_image
    for metric in metrics:
        for name, (column, _) in metric.corpus.items():
            rows[column] = list(measures[name].statistics)
    least, most = min(map(len, references.values())), max(map(len, references.values()))
    protocol = [
        f"tok:{tokenizer_name(language)}",
        f"refs:{least}" + (f"-{most}" if most > least else ""),
        f"images:{len(references)}",
        f"split:{split}",
        f"lang:{language}",
        *(metric.protocol for metric in metrics if metric.protocol),
        *interval_protocol(samples, seed),
    ]
    return ScoredCaptions(scores, rows, "|".join(protocol))
