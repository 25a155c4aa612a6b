"""A study on the features of two stores, from its settings to its tables."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from vitcapr.alignment.cka import Likeness, likeness
from vitcapr.alignment.inputs import WORDS, Features, image_inputs, pairs_of, text_inputs
from vitcapr.alignment.interface import Float32s
from vitcapr.alignment.report import chosen_settings, likeness_table, protocol, tables
from vitcapr.alignment.study import SIZES, Study, StudyRun, difference_frame, score_frame, seconds_frame
from vitcapr.alignment.words import word_features
from vitcapr.artefacts.manifest import Manifest
from vitcapr.config.alignment import StudyConfig
from vitcapr.errors import UserError
from vitcapr.features.batches.pairing import Pairing
from vitcapr.features.store.reader import FeatureStore
from vitcapr.progress import Reporter
from vitcapr.tables.markdown import to_page
from vitcapr.tables.table import Table

_SAMPLES = 2000
"""Bootstrap samples of a difference."""
_SPLITS = ("train", "validation", "test")


class Compared(NamedTuple):
    """What a study found.

    Attributes:
        scores: of :func:`vitcapr.alignment.study.score_frame`.
        differences: of :func:`vitcapr.alignment.study.difference_frame`.
        seconds: of :func:`vitcapr.alignment.study.seconds_frame`.
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


class Stored(NamedTuple):
    """Image features (N, D) by the name of their inputs, and text features (M, D), float32."""

    images: dict[str, Float32s]
    texts: Float32s


def read_features(views: Sequence[FeatureStore], sentences: FeatureStore, inputs: Sequence[str]) -> Stored:
    """The features that a study reads.

    Args:
        views: stores of the same images, the plain one first.

    Raises:
        UserError: a store lacks what an input needs.
    """
    texts = text_inputs(sentences)
    return Stored({name: image_inputs(views, name.split("+")) for name in inputs}, texts)


def compare_alignments(stored: Stored, pairing: Pairing, settings: StudyConfig, report: Reporter) -> Compared:
    """Fit and score what the settings name.

    Raises:
        UserError: there are fewer training pairs than a size, or an input reads words that are not known.
    """
    features = _with_words(stored, pairing)
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


def pairing_of(data: Manifest, language: str) -> Pairing:
    """The captions of a language and the splits of a data set, whose rows are those of its stores.

    Raises:
        UserError: a split has no captions.
    """
    table = data.captions_of(language=language)
    table = table[table["split"].isin(_SPLITS)]
    splits = {name: np.unique(table["image_row"][table["split"] == name]) for name in _SPLITS}
    for name, rows in splits.items():
        if not len(rows):
            raise UserError(f"no captions of the split {name}", where=data.dataset, remedy="give it some images")
    return Pairing(table["caption_row"].to_numpy(), table["image_row"].to_numpy(), splits, table["text"].tolist())


def _with_words(stored: Stored, pairing: Pairing) -> dict[str, Features]:
    """The features of each input: its images, and the texts with or without their words."""
    texts = {False: stored.texts}
    if any(WORDS in name.split("+") for name in stored.images):
        words = word_features(pairing, len(stored.texts))
        texts[True] = np.concatenate([stored.texts, words], axis=1)
    return {name: Features(images, texts[WORDS in name.split("+")]) for name, images in stored.images.items()}


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
