"""Families over numbers of pairs and seeds: fitted on training pairs, chosen on validation, scored once on test."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vitcapr.extensions.alignment.closed_forms import (
    RIDGES,
    Alignment,
    Fit,
    Pairs,
    Setting,
    closed_form,
    fit_asif,
    fit_cca,
    fit_csa,
    procrustes,
    ridge_both_ways,
)
from vitcapr.extensions.alignment.heads import HEADS, fit_head
from vitcapr.extensions.alignment.inputs import Features, pairs_of
from vitcapr.extensions.alignment.pairing import Pairing
from vitcapr.extensions.alignment.similarity import local_cka
from vitcapr.files import canonical_json
from vitcapr.formats.embeddings import Embeddings
from vitcapr.metrics.bootstrap import Measure, compare, score_of
from vitcapr.metrics.query_bank import corrected, weigh
from vitcapr.metrics.ranks import CaptionOwners, rank_matches
from vitcapr.metrics.retrieval_measures import measures
from vitcapr.progress import Reporter
from vitcapr.training.retriever_task import recalls

FAMILIES: Mapping[str, Fit] = {
    **{name: fit_head(name) for name in HEADS},
    "cca": fit_cca,
    "csa": fit_csa,
    "ridge": closed_form(ridge_both_ways, ridge=RIDGES),
    "procrustes": closed_form(procrustes),
    "asif": fit_asif,
    "local_cka": closed_form(local_cka),
}
"""A new family is a function, a line here and its name in ``config.py``."""
SEEDED = frozenset(HEADS)
"""The families in which the seed changes more than the pairs that are drawn."""
BASELINE = "linear"
"""The family that the others are compared with."""

TESTED = ("i2t_recall_1", "t2i_recall_1")
COMPARED = ("i2t_recall_1", "i2t_recall_10", "t2i_recall_1", "t2i_recall_10")
SIZES = (100, 300, 1_000, 3_000, 5_000, 10_000)
"""Numbers of training pairs; all pairs come after them."""
_INVERSE_TEMPERATURES = (5.0, 10.0, 20.0, 40.0)
_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)


class Selection(NamedTuple):
    """The alignment and the settings that the validation pairs chose."""

    alignment: Alignment
    settings: dict[str, Setting]
    validation_rsum: float
    """The sum of the six recalls on the validation pairs, 0 to 600."""
    cpu_seconds: float
    """Processor time of all fits and of the choice among them."""


def choose(fit: Fit, train: Pairs, validation: Pairs, seed: int) -> Selection:
    """Return the candidate with the largest sum of recalls on the validation pairs, of equal ones the first."""
    start = process_time()
    tried = (
        (_validation_rsum(alignment, validation), settings, alignment)
        for settings, alignment in fit(train, validation, seed)
    )
    rsum, settings, alignment = max(tried, key=lambda one: one[0])
    return Selection(alignment, settings, rsum, process_time() - start)


def _validation_rsum(alignment: Alignment, pairs: Pairs) -> float:
    points = alignment.images(pairs.images), alignment.texts(pairs.texts)
    return recalls(*points, pairs.caption_image)["validation_rsum"]


def retrieval_measures(embeddings: Embeddings) -> dict[str, Measure]:
    """Return the retrieval scores of embeddings, whose dot products are the scores."""
    owners = CaptionOwners.of(embeddings.caption_image, len(embeddings.images))
    return measures(rank_matches(embeddings.images, embeddings.captions, owners.caption_image), owners)


def embedded(alignment: Alignment, pairs: Pairs) -> Embeddings:
    """Return the pairs as points of the shared space; the rows are those of ``pairs``."""
    rows = np.arange(len(pairs.images), dtype=np.int32), np.arange(len(pairs.texts), dtype=np.int32)
    owner = pairs.caption_image.astype(np.int32)
    return Embeddings(alignment.images(pairs.images), alignment.texts(pairs.texts), *rows, owner)


@dataclass(frozen=True)
class Study:
    """Inputs and settings of the fits and of their scores.

    Attributes:
        inputs: the features by the name of the inputs.
        pairing: the pairs and their splits.
        families: names of :data:`FAMILIES`, each with the names of the inputs that it is fitted to.
        query_bank: score every fit once more with a query bank of its training pairs.
    """

    inputs: Mapping[str, Features]
    pairing: Pairing
    families: Mapping[str, Sequence[str]]
    query_bank: bool = False

    @property
    def training_pairs(self) -> int:
        """Number of captions of the training split."""
        return int(np.isin(self.pairing.image_row, self.pairing.splits["train"]).sum())

    @property
    def test_pool(self) -> tuple[int, int]:
        """Numbers of test images and of their captions."""
        rows = self.pairing.splits["test"]
        return len(rows), int(np.isin(self.pairing.image_row, rows).sum())

    @property
    def baseline(self) -> str | None:
        """The system that the others are compared with: the linear head on its first inputs; None without one."""
        inputs = self.families.get(BASELINE)
        return self._named(BASELINE, inputs[0]) if inputs else None

    def runs(self, sizes: Sequence[int], seeds: int, reporter: Reporter) -> Iterator[dict[str, Any]]:
        """Yield every system on every number of pairs, with every seed.

        The seed draws the pairs and, for a trained head, the first weights. A closed form on all pairs has one run.

        Returns:
            A fit: ``system``, the family with its inputs and ``query bank`` where they distinguish it; ``family``,
            ``inputs``, ``pairs``, ``seed``; ``settings``, of which ``weight`` and ``inverse_temperature`` are of the
            query bank; ``measures`` on the test pairs; ``validation_rsum`` and ``cpu_seconds`` without the bank.
        """
        held_out = {
            name: {split: pairs_of(*features, self.pairing, split, None, 0) for split in ("validation", "test")}
            for name, features in self.inputs.items()
        }
        for pairs, name, seed in product(sizes, self.inputs, range(seeds)):
            train = pairs_of(*self.inputs[name], self.pairing, "train", pairs, seed)
            for family in (family for family, inputs in self.families.items() if name in inputs):
                if seed and pairs == self.training_pairs and family not in SEEDED:
                    continue
                chosen = choose(FAMILIES[family], train, held_out[name]["validation"], seed)
                for bank, settings, scored in self._scored(chosen, train, held_out[name]):
                    system = f"{self._named(family, name)}{bank}"
                    recalls = ", ".join(f"{score} {100 * scored[score].value:.1f}" for score in TESTED)
                    how = f"{system}, {pairs:,} pairs, seed {seed}"
                    reporter.line(f"{how}: {recalls}, {chosen.cpu_seconds:.1f} CPU seconds")
                    yield {
                        "system": system,
                        "family": f"{family}{bank}",
                        "inputs": name,
                        "pairs": pairs,
                        "seed": seed,
                        "settings": settings,
                        "measures": scored,
                        "validation_rsum": chosen.validation_rsum,
                        "cpu_seconds": chosen.cpu_seconds,
                    }

    def _scored(
        self, chosen: Selection, train: Pairs, held_out: Mapping[str, Pairs]
    ) -> Iterator[tuple[str, dict[str, Setting], dict[str, Measure]]]:
        """Yield the end of the name, the settings and the scores on the test pairs; then the same with a query bank."""
        test = embedded(chosen.alignment, held_out["test"])
        yield "", chosen.settings, retrieval_measures(test)
        if self.query_bank:
            bank = embedded(chosen.alignment, train)
            weight = weigh(embedded(chosen.alignment, held_out["validation"]), bank, _INVERSE_TEMPERATURES, _WEIGHTS)
            settings = {**chosen.settings, "weight": weight.weight, "inverse_temperature": weight.inverse_temperature}
            yield ", query bank", settings, retrieval_measures(corrected(test, bank, weight))

    def _named(self, family: str, inputs: str) -> str:
        return family if len(self.inputs) == 1 else f"{family} ({inputs})"


def score_frame(runs: pd.DataFrame, images: int, captions: int) -> pd.DataFrame:
    """Return a row for each run, with test scores by name.

    The columns are ``system, pairs, seed``, the scores, ``validation_rsum, settings, images, captions``.

    Recalls are fractions; ``settings`` is JSON; ``images`` and ``captions`` are the numbers of the test split.

    Args:
        runs: the rows of :meth:`Study.runs`, also in the functions below.
    """
    scores = pd.DataFrame([{name: each.value for name, each in measures.items()} for measures in runs["measures"]])
    scores = runs[["system", "pairs", "seed"]].join(scores).join(runs["validation_rsum"])
    return scores.assign(settings=runs["settings"].map(canonical_json), images=images, captions=captions)


def interval_frame(runs: pd.DataFrame, samples: int) -> pd.DataFrame:
    """Return a row for each family, inputs, number of pairs and score: its mean over the seeds, with an interval.

    Columns: ``family, inputs, pairs, score, value, low, high``. The interval resamples the test images.
    """
    rows = []
    for key, several in runs.groupby(["family", "inputs", "pairs"], sort=False)["measures"]:
        for score in COMPARED:
            interval = score_of(seed_mean(several, score), samples, 0)
            rows.append([*key, score, interval["value"], interval["low"], interval["high"]])
    return pd.DataFrame(rows, columns=["family", "inputs", "pairs", "score", "value", "low", "high"])


def difference_frame(runs: pd.DataFrame, baseline: str | None, samples: int) -> pd.DataFrame:
    """Return a row for each system, number of pairs and score: the difference to the baseline on the same test images.

    Columns: ``system, pairs, score, difference, low, high, p_value``. A score is the mean over the seeds; the interval
    and the test resample the test images (:func:`vitcapr.metrics.bootstrap.compare`).
    """
    groups = dict(iter(runs.groupby(["system", "pairs"], sort=False)["measures"]))
    rows = []
    for (system, pairs), several in groups.items():
        if baseline is None or system == baseline or (baseline, pairs) not in groups:
            continue
        for score in COMPARED:
            difference = compare(seed_mean(several, score), seed_mean(groups[baseline, pairs], score), samples, 0)
            rows.append([system, pairs, score, *difference])
    columns = ["system", "pairs", "score", "difference", "low", "high", "p_value"]
    return pd.DataFrame(rows, columns=columns)


def seed_mean(runs: Iterable[Mapping[str, Measure]], score: str) -> Measure:
    """Return the measure whose value is the mean over the measures of runs on the same test images."""
    each = [measures[score] for measures in runs]
    statistics = np.mean([measure.statistics for measure in each], axis=0)
    return Measure(statistics, each[0].aggregate, each[0].n)
