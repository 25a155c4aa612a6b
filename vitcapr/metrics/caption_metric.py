"""The captions to score, their references, and the interface of a metric of them.

A metric is a module of ``vitcapr.metrics.captions`` that defines ``METRIC``. The module's name is the metric's name in
the configuration. Nothing else lists it: the configuration and the stage ``score`` find it by its module.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vitcapr.errors import UserError
from vitcapr.formats.captions import CocoCaption
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.scores import Score, write_metrics
from vitcapr.metrics.bootstrap import Array, Measure, interval_protocol, score_of

_LINE_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Characters that the Java programs, which read line by line, take for the end of a caption."""
ENGLISH = "en"
"""The language that the PTB tokenizer, METEOR, SPICE, CHAIR and the list of function words are for."""
_SEED = 0
"""Seed of the sample of images to score."""
ORACLE = "ORACLE, NOT A RESULT:chosen by cider against the references that score it|"
"""Begins the protocol of captions that their references chose: the ceiling of a reranking, never a result."""


class Caption(NamedTuple):
    """A caption and the image it is of, so that an error can name both."""

    image_id: str
    text: str


@dataclass(frozen=True)
class TokenisedCaptions:
    """One caption for each of N images, and everything that a metric may compare it with.

    Attributes:
        tokenised: (N,) the tokens of each caption, joined by a space.
        references: those of the references of each image, by its id; N in the order of the captions.
        written: (N,) the captions as they were decoded.
        training: the captions of the training split as they were written.
        paraphrases: folder of METEOR's paraphrases of these references.
        instances: the categories of the instance annotations of each image, by its id.
        language: of the captions.
    """

    tokenised: Sequence[str]
    references: Mapping[str, Sequence[str]]
    written: Sequence[str] = ()
    training: Callable[[], Sequence[str]] = list
    paraphrases: Path | None = None
    instances: Mapping[str, frozenset[str]] = field(default_factory=dict)
    language: str = ENGLISH

    @property
    def tokenised_references(self) -> list[Sequence[str]]:
        return list(self.references.values())

    @property
    def named(self) -> list[Caption]:
        return [Caption(image, text) for image, text in zip(self.references, self.tokenised, strict=True)]


@dataclass(frozen=True)
class CaptionMetric:
    """A metric of captions.

    Attributes:
        measure: the scores by name. Other scores, such as a number of different words, have no interval.
        protocol: what makes two of its numbers comparable.
        corpus: of scores that are no mean over the images: the column of per_image.parquet that keeps their statistics,
            and how sums of these make the score.
        check: raises a UserError where something is not installed, before anything is computed.
    """

    measure: Callable[[TokenisedCaptions], Mapping[str, Measure | float]]
    protocol: str = ""
    corpus: Mapping[str, tuple[str, Callable[[Array], Array]]] = field(default_factory=dict)
    check: Callable[[], None] = lambda: None


def one_line(text: str) -> str:
    """``text`` with spaces for line breaks, as COCO's evaluation reads captions, and without half surrogate pairs."""
    return _LINE_BREAK.sub(" ", text.encode("utf-8", "ignore").decode("utf-8"))


def references_of(data: Manifest, split: str, language: str) -> dict[str, list[str]]:
    """Return the raw captions of each image of the split, in the manifest's order.

    Raises:
        UserError: the split has no image, or an image of it has no caption in ``language``.
    """
    table = data.captions_of(split, language)
    references = {image: group["text"].tolist() for image, group in table.groupby("image_id", sort=False)}
    images = data.images["image_id"].iloc[data.rows(split)].tolist()
    if not images:
        what = f"the data set {data.dataset} has no image in the split '{split}'"
        raise UserError(what, remedy="set run.splits to splits that have images, or give the split images")
    for image in images:
        if image not in references:
            raise UserError(f"an image has no reference in the language '{language}'", where=f"image {image}")
    return {image: references[image] for image in images}


def captions_to_score(
    results: Mapping[str, CocoCaption], data: Manifest, split: str, language: str, counts: Mapping[Any, int]
) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """Return the captions of the images to score, their references by image id, and their protocol.

    ``counts[split]`` images of the split are scored.

    All images, and no part of the protocol, if there is no such count or it is not less than their number. The images
    are drawn at random, the same every time, and stay in the manifest's order.
    """
    references = references_of(data, split, language)
    images = list(references)
    written = check_candidates({image: result.caption for image, result in results.items()}, images)
    if (count := counts.get(split, len(images))) >= len(images):
        return written, references, []
    drawn = sorted(np.random.default_rng(_SEED).permutation(len(images))[:count].tolist())
    sampled = {images[place]: references[images[place]] for place in drawn}
    return [written[place] for place in drawn], sampled, [f"sample:{count}/{len(images)},seed={_SEED}"]


def check_candidates(captions: Mapping[str, str], images: Sequence[str]) -> list[str]:
    """Return the caption of each of ``images``, in their order.

    Args:
        captions: by image id.

    Raises:
        UserError: an image has no caption or is not among ``images``; a caption is empty or breaks the line.
    """
    for image, text in captions.items():
        check_text(Caption(image, text))
    if missing := [image for image in images if image not in captions]:
        raise UserError(
            f"{len(missing)} of {len(images)} images of the split have no caption",
            where=f"image {missing[0]}",
            remedy="decode the whole split",
        )
    if foreign := captions.keys() - set(images):
        raise UserError("a caption is of an image that is not in the split", where=f"image {min(foreign)}")
    return [captions[image] for image in images]


def check_text(caption: Caption) -> None:
    """Check that a caption is one line of text: scorers would hang on others, or miscount them.

    Raises:
        UserError: the caption is empty or breaks the line, which the scorers would hang on or miscount.
    """
    if not caption.text.strip():
        raise UserError(
            "an empty caption cannot be scored",
            where=f"image {caption.image_id}",
            remedy="set decoding.min_length to at least 1, or write a caption with words",
        )
    if match := _LINE_BREAK.search(caption.text):
        raise UserError(
            f"a caption holds the line break {match.group()!r}",
            where=f"image {caption.image_id}, caption {caption.text!r}",
            remedy="write a space instead",
        )


def check_tokens(candidates: Sequence[Caption], references: Sequence[Sequence[str]], words: Sequence[str]) -> None:
    """Check that tokenising left words of every candidate and of some reference of every image.

    Raises:
        UserError: tokenising left nothing of a candidate, ``words``, or of all the references of an image.
    """
    for candidate, others, left in zip(candidates, references, words, strict=True):
        where = f"image {candidate.image_id}, caption {candidate.text!r}"
        if not left:
            raise UserError("a caption has no word in it", where=where, remedy="write a caption with words")
        if not any(others):
            raise UserError("no reference of an image has a word in it", where=f"image {candidate.image_id}")


def write_measures(
    path: Path,
    data: Manifest,
    split: str,
    measures: Mapping[str, Measure],
    protocol: Sequence[str],
    *,
    samples: int,
    seed: int,
    model: str = "",
    decoding: str = "",
) -> dict[str, Score]:
    """Write the measures of a split's captions as ``metrics.json`` and return the scores.

    Args:
        protocol: the parts that say how the measures were made; the split and the intervals follow.
        samples, seed: of the intervals.
    """
    scores = {name: score_of(measure, samples, seed) for name, measure in measures.items()}
    parts = "|".join([*protocol, f"split:{split}", *interval_protocol(samples, seed)])
    write_metrics(path, data.dataset, split, scores, parts, model=model, decoding=decoding)
    return scores


def is_oracle(results: Iterable[CocoCaption]) -> bool:
    """Return whether the references chose a caption."""
    return any(result.oracle is not None for result in results)


def oracle_mark(results: Iterable[CocoCaption], decoding: str, where: object) -> str:
    """Return the beginning of the protocol: :data:`ORACLE`, or an empty text for an honest result.

    Raises:
        UserError: captions of an oracle would be scored under a name that does not say so.
    """
    if not is_oracle(results):
        return ""
    if "oracle" not in decoding.lower():
        what = f"these captions were chosen with the references, and '{decoding}' does not say so"
        raise UserError(what, where=where, remedy="score them under a name that contains 'oracle'")
    return ORACLE
