"""How well metrics agree with human judgments of captions: Kendall's tau, with intervals over the images."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from vitcapr.errors import UserError
from vitcapr.formats.scores import Judgment
from vitcapr.metrics.bootstrap import LEVEL, Array

VARIANTS = ("b", "c")


class JudgedCaptions(NamedTuple):
    """The judgments to score, the candidate and the references of each, by its number as text."""

    judgments: list[Judgment]
    captions: dict[str, str]
    references: dict[str, list[str]]
    left_out: int
    """Number of judgments whose candidate is among the references."""


def candidates_of(
    judgments: Sequence[Judgment], captions: Mapping[str, str], image_of: Mapping[str, str]
) -> JudgedCaptions:
    """Look up the texts of judged captions.

    Args:
        captions: the text of each caption of the corpus by id.
        image_of: its image.

    Raises:
        UserError: a caption or an image is not in the corpus, or no candidate remains.
    """
    of_image: dict[str, list[str]] = {}
    for caption, image in image_of.items():
        of_image.setdefault(image, []).append(captions[caption])
    kept: list[Judgment] = []
    for judgment in judgments:
        for what, name, known in (("caption", judgment.caption_id, captions), ("image", judgment.image_id, of_image)):
            if name not in known:
                raise UserError(f"no {what} of the corpus is called '{name}'", remedy="give the captions of all images")
        if captions[judgment.caption_id] not in of_image[judgment.image_id]:
            kept.append(judgment)
    if not kept:
        raise UserError("every candidate is one of its image's references", remedy="give judgments of other captions")
    texts = {str(number): captions[one.caption_id] for number, one in enumerate(kept)}
    references = {str(number): of_image[one.image_id] for number, one in enumerate(kept)}
    return JudgedCaptions(kept, texts, references, len(judgments) - len(kept))


def agreement(scores: Mapping[str, Array], judgments: Sequence[Judgment], samples: int, seed: int) -> pd.DataFrame:
    """A row for each metric and variant: ``metric, variant, tau, low, high, n``.

    Every rating of a candidate is paired with the candidate's score; ``scores`` are in the order of the judgments.
    tau-b and tau-c are those of ``scipy.stats.kendalltau`` (Kendall 1945; Stuart 1953). The 95 % interval resamples
    the images with all their judgments.
    """
    ratings = np.concatenate([one.ratings for one in judgments])
    candidate = np.repeat(np.arange(len(judgments)), [len(one.ratings) for one in judgments])
    images = np.repeat(pd.factorize(np.array([one.image_id for one in judgments]))[0], np.bincount(candidate))
    by_image = np.split(np.argsort(images, kind="stable"), np.cumsum(np.bincount(images))[:-1])
    draws = np.random.default_rng(seed).integers(0, len(by_image), (samples, len(by_image)))
    resampled = [np.concatenate([by_image[image] for image in draw]) for draw in draws]
    rows = []
    for metric, values in scores.items():
        each = np.asarray(values, np.float64)[candidate]
        for variant in VARIANTS:
            taus = [_tau(each[places], ratings[places], variant) for places in resampled]
            low, high = np.nanquantile(taus, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if taus else (np.nan, np.nan)
            tau = _tau(each, ratings, variant)
            rows.append({"metric": metric, "variant": variant, "tau": tau, "low": low, "high": high, "n": len(ratings)})
    return pd.DataFrame(rows)


def _tau(scores: Array, ratings: Array, variant: str) -> float:
    return float(kendalltau(scores, ratings, variant=variant).statistic)
