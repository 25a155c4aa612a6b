"""Agreement of metrics with human judgments of captions: Kendall's tau, with intervals over the images.

The judgments are those of Flickr8k (Hodosh et al., Framing Image Description as a Ranking Task, 2013).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from vitcapr import joints
from vitcapr.api.pairs_check import possible_orders, shared_words, stated
from vitcapr.data.flickr8k import parse_token_file
from vitcapr.errors import UserError
from vitcapr.extensions.preferences.compositional import Embed, embed_once
from vitcapr.files import read_text
from vitcapr.formats.records import reading
from vitcapr.metrics.bootstrap import NOT_TESTED, Array, percentiles, verdict
from vitcapr.metrics.clip_score import clip_scores

VARIANTS = ("b", "c")

_JUDGED = 2000
"""Judgments that are compared; from this number on, right ones are above chance."""


class Judgment(NamedTuple):
    """Human judgment of a candidate caption of an image; the caption may be another image's.

    Attributes:
        image_id: the image that was shown.
        caption_id: the candidate.
        ratings: higher is better.
    """

    image_id: str
    caption_id: str
    ratings: tuple[float, ...]


def read_expert(path: Path) -> list[Judgment]:
    """ExpertAnnotations.txt: lines ``image<tab>caption id<tab>rating<tab>rating<tab>rating``, ratings from 1 to 4."""
    form = "image, caption id and three ratings from 1 to 4"
    return _judgments(path, form, lambda numbers: all(1 <= number <= 4 for number in numbers), 3)


def read_crowdflower(path: Path) -> list[Judgment]:
    """CrowdFlowerAnnotations.txt: lines ``image<tab>caption id<tab>share of yes<tab>yes<tab>no``; the share rates."""
    form = "image, caption id, share from 0 to 1, number of yes and number of no"
    return _judgments(path, form, lambda numbers: 0 <= numbers[0] <= 1, 1)


def _judgments(path: Path, form: str, fits: Callable[[list[float]], bool], ratings: int) -> list[Judgment]:
    judgments, wrong, remedy = [], list[int](), f"a line has {form}, by tabs"
    with reading(path, "a file of judgments", "give the file"):
        encoding = json.detect_encoding(content := path.read_bytes())
        lines = content.decode(encoding, "replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            image, caption, *words = line.split("\t")
            numbers = [float(word) for word in words]
        except ValueError:
            numbers = []
        if len(numbers) == 3 and fits(numbers):
            judgments.append(Judgment(image, caption, tuple(numbers[:ratings])))
        else:
            wrong.append(number)
    if wrong:
        what = f"{len(wrong)} of {len(lines)} lines are no judgments or damaged"
        raise UserError(what, where=f"{path}:{wrong[0]}, the first", remedy=f"{remedy}; correct a copy of the file")
    if not judgments:
        raise UserError("there is no judgment", where=path, remedy=remedy)
    return judgments


class JudgedCaptions(NamedTuple):
    """The judgments to score, the candidate and the references of each, by its number as text."""

    judgments: list[Judgment]
    captions: dict[str, str]
    references: dict[str, list[str]]
    changed: str
    """Judgments that were left out, in words."""


class Corpus(NamedTuple):
    """The captions of a data set: each by its id, and those of each image."""

    captions: Mapping[str, str]
    of_image: Mapping[str, list[str]]


def read_corpus(path: Path) -> Corpus:
    """Flickr8k.token.txt: lines ``image#number<tab>caption``.

    Raises:
        UserError: another line is in the file.
    """
    remedy = "give Flickr8k.token.txt"
    with reading(path, "a file of captions", remedy):
        listed, rejected = parse_token_file(read_text(path), path.name)
    for item, reason in rejected:
        raise UserError(reason, where=item, remedy=remedy)
    images: dict[str, list[str]] = {}
    for one in listed:
        images.setdefault(one.image_id, []).append(one.text)
    return Corpus({one.caption_id: one.text for one in listed}, images)


def _check(judgments: Sequence[Judgment], corpus: Corpus) -> None:
    for judgment in judgments:
        known = (("caption", judgment.caption_id, corpus.captions), ("image", judgment.image_id, corpus.of_image))
        for what, name, names in known:
            if name not in names:
                remedy = "give the captions of all images"
                raise UserError(f"no {what} of the corpus is called '{name}'", remedy=remedy)


def drop_candidates(judgments: Sequence[Judgment], corpus: Corpus) -> JudgedCaptions:
    """Leave out the candidates that are references of their image: the protocol of Flickr8k-Expert.

    Source: Anderson et al. 2016, SPICE; Hessel et al. 2021, CLIPScore, appendix A.

    Raises:
        UserError: a caption or an image is not in the corpus, or no candidate remains.
    """
    _check(judgments, corpus)
    kept = [one for one in judgments if corpus.captions[one.caption_id] not in corpus.of_image[one.image_id]]
    changed = f"{len(judgments) - len(kept)} left out because they are references of their image"
    return _judged(kept, corpus, corpus.of_image, changed)


def drop_references(judgments: Sequence[Judgment], corpus: Corpus) -> JudgedCaptions:
    """Keep all candidates, and remove judged captions from the references of their image.

    This is the protocol of Flickr8k-CF.

    A caption that was judged for an image is no reference of this image, for any of its candidates. Source: Hessel et
    al. 2021, CLIPScore, the code of appendix A.

    Raises:
        UserError: a caption or an image is not in the corpus, or an image keeps no reference.
    """
    _check(judgments, corpus)
    judged: dict[str, set[str]] = {}
    for one in judgments:
        judged.setdefault(one.image_id, set()).add(corpus.captions[one.caption_id])
    references = {image: [text for text in corpus.of_image[image] if text not in judged[image]] for image in judged}
    if empty := [image for image, texts in references.items() if not texts]:
        raise UserError("every reference of an image is judged", where=f"image {empty[0]}", remedy="leave it out")
    count = sum(len(corpus.of_image[image]) - len(texts) for image, texts in references.items())
    return _judged(judgments, corpus, references, f"{count} references left out because they are judged")


def _judged(
    judgments: Sequence[Judgment], corpus: Corpus, references: Mapping[str, list[str]], changed: str
) -> JudgedCaptions:
    if not judgments:
        raise UserError("every candidate is one of its image's references", remedy="give judgments of other captions")
    texts = {str(number): corpus.captions[one.caption_id] for number, one in enumerate(judgments)}
    others = {str(number): references[one.image_id] for number, one in enumerate(judgments)}
    return JudgedCaptions(list(judgments), texts, others, changed)


class Agreement(NamedTuple):
    """Agreement of metrics with people.

    Attributes:
        taus: a row for each metric and variant: ``metric, variant, tau, low, high, n``.
        differences: a row for each variant and two metrics, of ``metric`` less ``other``: ``variant, metric, other,
            difference, low, high, p_value, verdict``.
    """

    taus: pd.DataFrame
    differences: pd.DataFrame


def agreement(scores: Mapping[str, Array], judgments: Sequence[Judgment], samples: int, seed: int) -> Agreement:
    """Kendall's tau of each metric and the ratings, and the differences between metrics.

    Every rating of a candidate is paired with the candidate's score; ``scores`` are in the order of the judgments.
    tau-b and tau-c are those of ``scipy.stats.kendalltau`` (Kendall 1945; Stuart 1953). The 95 % intervals resample
    the images with all their judgments, the same images for all metrics. The two-sided p-value of a difference inverts
    its percentile interval: twice the smaller share of the samples in which the difference is at most or at least 0,
    plus one sample.
    """
    ratings = np.concatenate([one.ratings for one in judgments])
    if (ratings == ratings[0]).all():
        what = f"the {len(ratings)} ratings are all {ratings[0]:g}, so no metric can agree with them"
        raise UserError(what, remedy="give ratings that differ")
    if all(np.ptp(np.asarray(values)) == 0 for values in scores.values()):
        what = "each metric gives all candidates one score, so it cannot agree with the ratings"
        raise UserError(what, remedy="give other metrics or candidates")
    candidate = np.repeat(np.arange(len(judgments)), [len(one.ratings) for one in judgments])
    images = pd.factorize(np.array([one.image_id for one in judgments]))[0][candidate]
    by_image = np.split(np.argsort(images, kind="stable"), np.cumsum(np.bincount(images))[:-1])
    draws = np.random.default_rng(seed).integers(0, len(by_image), (samples, len(by_image)))
    every = [np.arange(len(ratings)), *(np.concatenate([by_image[image] for image in draw]) for draw in draws)]
    taus, differences = [], []
    for variant in VARIANTS:
        of_metric = {}
        for metric, values in scores.items():
            each = np.asarray(values, np.float64)[candidate]
            taus_of = (kendalltau(each[places], ratings[places], variant=variant).statistic for places in every)
            of_metric[metric] = np.array([float(tau) for tau in taus_of])
            bounds = percentiles(of_metric[metric][1:]) if samples else (np.nan, np.nan)
            taus.append([metric, variant, of_metric[metric][0], *bounds, len(ratings)])
        for metric, other in permutations(of_metric, 2):
            difference = of_metric[metric] - of_metric[other]
            low, high = percentiles(difference[1:]) if samples else (np.nan, np.nan)
            conclusion = verdict(low, high) if samples else NOT_TESTED
            differences.append([variant, metric, other, difference[0], low, high, _p_value(difference[1:]), conclusion])
    names = ["variant", "metric", "other", "difference", "low", "high", "p_value", "verdict"]
    return Agreement(
        pd.DataFrame(taus, columns=["metric", "variant", "tau", "low", "high", "n"]),
        pd.DataFrame(differences, columns=names),
    )


def _p_value(differences: Array) -> float:
    if not len(differences):
        return np.nan
    fewer = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    return min(1.0, 2 * (1 + fewer) / (1 + len(differences)))


def retriever_scores(judged: JudgedCaptions, embed_texts: Embed, embed_images: Embed) -> dict[str, Array]:
    """Return ``retriever`` and ``ref_retriever``, (N,): CLIPScore and RefCLIPScore by the retriever."""
    counts = [len(texts) for texts in judged.references.values()]
    references = [text for texts in judged.references.values() for text in texts]
    # Candidates share images and references: each is embedded once.
    texts = embed_once(embed_texts, [*judged.captions.values(), *references])
    images = embed_once(embed_images, [one.image_id for one in judged.judgments])
    captions, others = np.split(texts, [len(counts)])
    scores = clip_scores(images, captions, others, np.repeat(np.arange(len(counts)), counts))
    return {"retriever": scores["clip_score"].per_image, "ref_retriever": scores["ref_clip_score"].per_image}


def check_judgments(
    captions: Sequence[str], references: Sequence[Sequence[str]], ratings: Sequence[float], where: object
) -> str:
    """Compare the ratings of captions with the words that they share with the references of the rated images.

    Most of the judged captions were written for other images, so only those with high ratings share words. The verdict
    is returned; ratings of other captions or images are a UserError.
    """
    rows = joints.sample_rows(len(captions), _JUDGED)
    similarity, drawn = shared_words(references), [captions[row] for row in rows]
    above = np.asarray(ratings, np.float64)[rows]
    above -= above.mean()
    orders = possible_orders(rows, [str(row) for row in range(len(captions))])

    def rated(order: np.ndarray) -> np.ndarray:
        return above * similarity(drawn, order, 0)

    powered = len(rows) == _JUDGED
    return stated(joints.paired("judgments and captions", rated, len(captions), orders, powered), where)
