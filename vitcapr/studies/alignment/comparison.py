"""A study on the features of two stores, from its settings to its tables."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from vitcapr.batches.pairing import Pairing
from vitcapr.config.alignment import StudyConfig
from vitcapr.formats.tables import Table, to_page
from vitcapr.progress import Reporter
from vitcapr.store.reader import FeatureStore
from vitcapr.studies.alignment.inputs import WORDS, Features, image_inputs, pairs_of, text_inputs
from vitcapr.studies.alignment.likeness import Likeness, likeness
from vitcapr.studies.alignment.report import chosen_settings, likeness_table, protocol, tables
from vitcapr.studies.alignment.study import SIZES, Study, StudyRun, difference_frame, score_frame, seconds_frame
from vitcapr.studies.alignment.words import word_features

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
    fits = {name: _likeness(found, pairing) for name, found in features.items()}
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


def _likeness(features: Features, pairing: Pairing) -> Likeness:
    base, held_out = (pairs_of(*features, pairing, split, None, 0) for split in ("train", "validation"))
    return likeness(base, held_out)


def _sizes(settings: StudyConfig, training_pairs: int) -> list[int]:
    """Numbers of pairs without repetition: those given, or the default ones that the training pairs suffice for."""
    wanted = settings.sizes or [*(size for size in SIZES if size < training_pairs), None]
    return list(dict.fromkeys(training_pairs if size is None else size for size in wanted))


def _written(study: Study, runs: Sequence[StudyRun], fits: dict[str, Likeness]) -> Compared:
    scores, differences = score_frame(study, runs), difference_frame(runs, study.baseline, _SAMPLES)
    seconds = seconds_frame(runs)
    found = [*tables(scores, differences, seconds, study.baseline), chosen_settings(scores), likeness_table(fits)]
    return Compared(scores, differences, seconds, found, protocol(study, len(fits), _SAMPLES))
