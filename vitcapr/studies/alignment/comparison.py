"""A study on the features of two stores, from its settings to its tables."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vitcapr.batches.pairing import Pairing
from vitcapr.config.alignment import StudyConfig
from vitcapr.formats.tables import NOTHING, Cell, Table, row, to_page
from vitcapr.metrics.labels import COLUMNS as SCORES
from vitcapr.progress import Reporter
from vitcapr.store.reader import FeatureStore
from vitcapr.studies.alignment.inputs import WORDS, Features, image_inputs, pairs_of, text_inputs, word_features
from vitcapr.studies.alignment.similarity import Similarity, similarity
from vitcapr.studies.alignment.study import (
    COMPARED,
    SIZES,
    Study,
    StudyRun,
    difference_frame,
    score_frame,
    seconds_frame,
)

_TESTED = ("i2t_recall_1", "t2i_recall_1")
_SAMPLES = 2000
"""Bootstrap samples of a difference."""


class Compared(NamedTuple):
    """What a study found.

    Attributes:
        scores: of :func:`vitcapr.studies.alignment.study.score_frame`.
        differences: of :func:`vitcapr.studies.alignment.study.difference_frame`.
        seconds: of :func:`vitcapr.studies.alignment.study.seconds_frame`.
        tables: all of it for people.
        protocol: how the numbers were made, in a paragraph.
    """

    scores: pd.DataFrame
    differences: pd.DataFrame
    seconds: pd.DataFrame
    tables: list[Table]
    protocol: str

    @property
    def page(self) -> str:
        """The tables and the protocol in Markdown."""
        return to_page(self.tables, "Alignment of two frozen encoders", self.protocol)


def compare_alignments(
    views: Sequence[FeatureStore],
    sentences: FeatureStore,
    pairing: Pairing,
    settings: StudyConfig,
    report: Reporter,
) -> Compared:
    """Fit and score what the settings name.

    Args:
        views: stores of the same images, the plain one first.
        sentences: the store of the captions.

    Raises:
        UserError: a store lacks what an input needs, there are fewer training pairs than a size, or an input reads
            words that are not known.
    """
    features = _features(views, sentences, pairing, settings.inputs)
    fits = {name: _similarity(found, pairing) for name, found in features.items()}
    if settings.choose_inputs:
        best = max(fits, key=lambda name: fits[name].mutual_neighbours)
        report.line(f"inputs {best}: the largest mutual kNN of training pairs, {fits[best].mutual_neighbours:.3f}")
        features = {best: features[best]}
    families: dict[str, list[str]] = {}
    for name, inputs in settings.fitted:
        families.setdefault(name, []).extend([inputs] if inputs else features)
    study = Study(features, pairing, families, settings.query_bank)
    splits = ", ".join(f"{len(rows)} {name}" for name, rows in sorted(pairing.splits.items()))
    report.line(f"images: {splits}; {study.training_pairs:,} training pairs")
    return _written(study, list(study.runs(_sizes(settings, study.training_pairs), settings.seeds, report)), fits)


def _features(
    views: Sequence[FeatureStore], sentences: FeatureStore, pairing: Pairing, inputs: Sequence[str]
) -> dict[str, Features]:
    """The features of each input: its images, and the texts with or without their words."""
    parts = {name: name.split("+") for name in inputs}
    texts = with_words = text_inputs(sentences)
    if any(WORDS in named for named in parts.values()):
        with_words = np.concatenate([texts, word_features(pairing, len(texts))], axis=1)
    return {
        name: Features(image_inputs(views, named), with_words if WORDS in named else texts)
        for name, named in parts.items()
    }


def _similarity(features: Features, pairing: Pairing) -> Similarity:
    base, held_out = (pairs_of(*features, pairing, split, None, 0) for split in ("train", "validation"))
    return similarity(base, held_out)


def _sizes(settings: StudyConfig, training_pairs: int) -> list[int]:
    """Numbers of pairs without repetition: those given, or the default ones that the training pairs suffice for."""
    wanted = settings.sizes or [*(size for size in SIZES if size < training_pairs), None]
    return list(dict.fromkeys(training_pairs if size is None else size for size in wanted))


def _written(study: Study, runs: Sequence[StudyRun], fits: dict[str, Similarity]) -> Compared:
    scores, differences = score_frame(study, runs), difference_frame(runs, study.baseline, _SAMPLES)
    seconds = seconds_frame(runs)
    found = [*tables(scores, differences, seconds, study.baseline), chosen_settings(scores), similarity_table(fits)]
    return Compared(scores, differences, seconds, found, protocol(study, len(fits), _SAMPLES))


def tables(scores: pd.DataFrame, differences: pd.DataFrame, seconds: pd.DataFrame, baseline: str | None) -> list[Table]:
    """A table for each number of pairs: recalls in percent, differences to the baseline and processor time.

    Args:
        scores, differences, seconds: of :mod:`vitcapr.studies.alignment.study`.
    """
    against = {(one["system"], one["pairs"], one["score"]): one for one in differences.to_dict("records")}
    scores = scores.merge(seconds, on=["system", "pairs", "seed"])
    return [_table(int(pairs), part, against, baseline) for pairs, part in scores.groupby("pairs", sort=True)]  # type: ignore[arg-type]


def _table(
    pairs: int, part: pd.DataFrame, against: Mapping[tuple[str, int, str], Mapping[Any, Any]], baseline: str | None
) -> Table:
    tested = () if baseline is None else _TESTED
    rows = []
    for system, runs in part.groupby("system", sort=False):
        recalls = [_mean(runs[score]) for score in COMPARED]
        gains = [_gain(against.get((str(system), pairs, score)), score) for score in tested]
        seconds = f"{runs['cpu_seconds'].mean():.1f}"
        rows.append(row(str(system), str(len(runs)), *recalls, *gains, seconds))
    labels = [SCORES[score].label for score in COMPARED]
    gains_of = [f"{SCORES[score].label} - {baseline}" for score in tested]
    return Table(f"{pairs:,} pairs", ("system", "runs", *labels, *gains_of, "CPU s"), tuple(rows))


def _mean(values: "pd.Series[float]") -> Cell:
    spread = f" ± {100 * values.std(ddof=1):.1f}" if len(values) > 1 else ""
    return Cell(f"{100 * values.mean():.1f}{spread}")


def _gain(one: Mapping[Any, Any] | None, score: str) -> Cell:
    return Cell(NOTHING) if one is None else SCORES[score].difference(one["difference"], one["low"], one["high"])


def chosen_settings(scores: pd.DataFrame) -> Table:
    """The settings that the validation pairs chose for the first seed."""
    systems = list(dict.fromkeys(scores["system"]))
    sizes = sorted(set(scores["pairs"]))
    found = {
        (one["system"], one["pairs"]): ", ".join(f"{k} {v}" for k, v in json.loads(one["settings"]).items())
        for one in scores[scores["seed"] == 0].to_dict("records")
    }
    rows = [row(name, *(found.get((name, size)) or NOTHING for size in sizes)) for name in systems]
    return Table("Settings chosen on validation, seed 0", ("system", *(f"{s:,}" for s in sizes)), tuple(rows))


def similarity_table(fits: Mapping[str, Similarity]) -> Table:
    """How well the encoders fit each other before anything is fitted, for each image input."""
    rows = [
        row(name, f"{found.cka:.3f}", f"{found.mutual_neighbours:.3f}", f"{100 * found.matched:.1f}")
        for name, found in fits.items()
    ]
    columns = ("inputs", "CKA", "mutual kNN", "matched by local CKA, %")
    return Table("Before anything is fitted", columns, tuple(rows))


def protocol(study: Study, candidates: int, samples: int) -> str:
    """How the numbers were made, in a paragraph.

    Args:
        candidates: number of image inputs, from which those of the study were chosen if it has fewer.
        samples: of the bootstrap.
    """
    images, captions = study.test_pool
    names = ", ".join(study.inputs)
    sentences = [
        f"Recall in percent on {images:,} test images with {captions:,} captions: mean and standard deviation over the "
        "runs, each with its own draw of training pairs.",
        f"Inputs: {names}."
        if candidates == len(study.inputs)
        else f"Inputs: {names}, those of {candidates} with the largest mutual kNN of all training pairs.",
        f"Settings are chosen by the sum of recalls on {len(study.pairing.splits['validation']):,} validation images.",
    ]
    if any(WORDS in name.split("+") for name in study.inputs):
        sentences.append("The directions of the words are fitted to all training captions.")
    if study.query_bank:
        sentences.append("A query bank is made of the training pairs of its fit.")
    if study.baseline:
        sentences.append(
            f"Differences are to {study.baseline} on the same test images, with 95 % intervals of {samples:,} "
            "bootstrap samples of the images."
        )
    sentences.append("CPU seconds include the choice of the settings, but not a query bank.")
    return " ".join(sentences)
