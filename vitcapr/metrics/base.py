"""The interface of a caption metric: a module of ``vitcapr.metrics.captions`` that defines ``METRIC``.

The module's name is the metric's name in the configuration (``metrics.caption``). Nothing else lists it: the
configuration, the stage ``score`` and the tables find it by its module.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vitcapr.metrics.bootstrap import Array, Measure
from vitcapr.metrics.inputs import Caption


@dataclass(frozen=True)
class TokenisedCaptions:
    """One caption for each of N images, and all that a metric may compare it with.

    Attributes:
        words: (N,) the captions, tokenised.
        references: the tokenised references of each image, by its id; N in the order of the captions.
        written: (N,) the captions as they were decoded.
        training: the captions of the training split as they were written.
        paraphrases: folder of METEOR's paraphrases of these references.
        timeout: seconds after which a silent program is stopped.
        instances: the categories of the instance annotations of each image, by its id.
    """

    words: Sequence[str]
    references: Mapping[str, Sequence[str]]
    written: Sequence[str] = ()
    training: Callable[[], Sequence[str]] = list
    paraphrases: Path | None = None
    timeout: float = 300
    instances: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def reference_words(self) -> list[Sequence[str]]:
        return list(self.references.values())

    @property
    def named(self) -> list[Caption]:
        return [Caption(image, text) for image, text in zip(self.references, self.words, strict=True)]


@dataclass(frozen=True)
class CaptionMetric:
    """Attributes:
    measure: the scores by name. A score that is no measure, such as a number of different words, has no interval.
    protocol: what makes two of its numbers comparable.
    corpus: of scores that are no mean over the images: the column of per_image.parquet that keeps their statistics,
        and how sums of these make the score.
    check: raises a UserError where something is not installed, before anything is computed.
    """

    measure: Callable[[TokenisedCaptions], Mapping[str, Measure | float]]
    protocol: str = ""
    corpus: Mapping[str, tuple[str, Callable[[Array], Array]]] = field(default_factory=dict)
    check: Callable[[], None] = lambda: None
