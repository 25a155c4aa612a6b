"""A study on the features of two stores, from its settings to its tables."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from vitcapr import joints
from vitcapr.extensions.alignment.inputs import WORDS, Features, image_inputs, pairs_of, word_features
from vitcapr.extensions.alignment.pairing import Pairing
from vitcapr.extensions.alignment.settings import StudyConfig
from vitcapr.extensions.alignment.similarity import PERMUTATIONS, similarity
from vitcapr.extensions.alignment.study import (
    COMPARED,
    SIZES,
    TESTED,
    Study,
    difference_frame,
    interval_frame,
    score_frame,
)
from vitcapr.files import write_text
from vitcapr.formats.containers import frame_to_csv
from vitcapr.formats.tables import NOTHING, Table, row, to_page
from vitcapr.metrics.labels import COLUMNS as SCORES
from vitcapr.progress import Reporter
from vitcapr.store.content import WITHOUT, stop_if_wrong
from vitcapr.store.layout import TEXT
from vitcapr.store.reader import FeatureStore

_SAMPLES = 2000
"""Bootstrap samples of a difference."""


class StudyResult(NamedTuple):
    """The result of a study: its data frames (see the module ``study``), and all of it for people."""

    scores: pd.DataFrame
    differences: pd.DataFrame
    intervals: pd.DataFrame
    similarity: pd.DataFrame
    seconds: pd.DataFrame
    tables: list[Table]
    protocol: str
    """How the numbers were made, in a paragraph."""

    @property
    def page(self) -> str:
        """The tables and the protocol in Markdown."""
        return to_page(self.tables, "Alignment of two frozen encoders", self.protocol)

    def write(self, **paths: Path) -> None:
        """Write the data frames as CSV, by their names."""
        for name, path in paths.items():
            write_text(path, frame_to_csv(getattr(self, name)))


def compare_alignments(
    views: Sequence[FeatureStore],
    sentences: FeatureStore,
    pairing: Pairing,
    settings: StudyConfig,
    report: Reporter,
    content_check: bool = True,
) -> StudyResult:
    """Fit and score what the settings name.

    Args:
        views: stores of the same images, the plain one first.
        sentences: the store of the captions.
        content_check: compare the features of images and captions first. False: they belong together, as the user says.

    Raises:
        UserError: the captions belong to other images by their content.
    """
    if content_check:
        check_pairs(views[0], sentences, pairing.image_row, pairing.caption_row, report.line)
    else:
        report.line(WITHOUT)
    features = _features(views, sentences, pairing, settings.inputs)
    before = pd.DataFrame(
        {"inputs": name, **similarity(*(pairs_of(*each, pairing, split, None, 0) for split in ("train", "validation")))}
        for name, each in features.items()
    )
    families: dict[str, list[str]] = {}
    for name, inputs in settings.fitted:
        families.setdefault(name, []).extend([inputs] if inputs else features)
    study = Study(features, pairing, families, settings.query_bank)
    splits = ", ".join(f"{len(rows)} {name}" for name, rows in sorted(pairing.splits.items()))
    report.line(f"images: {splits}; {study.training_pairs:,} training pairs")
    default = [*(size for size in SIZES if size < study.training_pairs), None]
    sizes = dict.fromkeys(study.training_pairs if size is None else size for size in settings.sizes or default)
    runs = pd.DataFrame(study.runs(list(sizes), settings.seeds, report))
    scores = score_frame(runs, *study.test_pool)
    seconds = runs[["system", "family", "inputs", "pairs", "seed", "cpu_seconds"]]
    differences = difference_frame(runs, study.baseline, _SAMPLES)
    tables = [*recall_tables(scores, differences, seconds, study.baseline), similarity_table(before)]
    frames = scores, differences, interval_frame(runs, _SAMPLES), before, seconds
    return StudyResult(*frames, tables, protocol(study))


def _features(
    views: Sequence[FeatureStore], sentences: FeatureStore, pairing: Pairing, inputs: Sequence[str]
) -> dict[str, Features]:
    """Return the features of each input: its images, and the texts with or without their words."""
    parts = {name: name.split("+") for name in inputs}
    texts = with_words = np.asarray(sentences["text"], np.float32)
    if any(WORDS in named for named in parts.values()):
        with_words = np.concatenate([texts, word_features(pairing, len(texts))], axis=1)
    return {
        name: Features(image_inputs(views, named), with_words if WORDS in named else texts)
        for name, named in parts.items()
    }


def recall_tables(
    scores: pd.DataFrame, differences: pd.DataFrame, seconds: pd.DataFrame, baseline: str | None
) -> list[Table]:
    """Return a table for each number of pairs: recalls in percent, differences to the baseline and processor time."""
    against = {(one["system"], one["pairs"], one["score"]): one for one in differences.to_dict("records")}
    tested = () if baseline is None else TESTED
    labels = [SCORES[score].label for score in COMPARED]
    gain_labels = [f"{SCORES[score].label} - {baseline}" for score in tested]
    tables = []
    for pairs, part in scores.merge(seconds, on=["system", "pairs", "seed"]).groupby("pairs", sort=True):
        rows = []
        for system, runs in part.groupby("system", sort=False):
            spread = "" if len(runs) == 1 else " ± {:.1f}"
            recalls = [f"{100 * runs[score].mean():.1f}{spread.format(100 * runs[score].std())}" for score in COMPARED]
            gains = []
            for score in tested:
                one = against.get((system, pairs, score))
                bounds = one and (one["difference"], one["low"], one["high"])
                gains.append(SCORES[score].difference(*bounds) if bounds else NOTHING)
            rows.append(row(str(system), str(len(runs)), *recalls, *gains, f"{runs['cpu_seconds'].mean():.1f}"))
        columns = "system", "runs", *labels, *gain_labels, "CPU s"
        tables.append(Table(f"{pairs:,} pairs", columns, tuple(rows)))
    return tables


def similarity_table(frame: pd.DataFrame) -> Table:
    """Compare the encoders before anything is fitted: a row for each image input."""
    rows = [
        row(name, *(f"{value:.3f}" for value in values), f"{100 * matched:.1f}")
        for name, *values, matched in frame.itertuples(index=False, name=None)
    ]
    columns = ("inputs", "CKA", "mutual kNN", "calibrated", "p", "matched by local CKA, %")
    return Table("Before anything is fitted", columns, tuple(rows))


def protocol(study: Study) -> str:
    """Describe the protocol of the numbers in a paragraph."""
    images, captions = study.test_pool
    sentences = [
        f"Recall in percent on {images:,} test images with {captions:,} captions: mean and standard deviation over the "
        "runs, each with its own draw of training pairs.",
        f"Inputs: {', '.join(study.inputs)}.",
        f"Mutual kNN is calibrated by {PERMUTATIONS} permutations of the pairs: 0 is the quantile 0.95 of chance.",
        f"Settings are chosen by the sum of recalls on {len(study.pairing.splits['validation']):,} validation images.",
    ]
    if any(WORDS in name.split("+") for name in study.inputs):
        sentences.append("The directions of the words are fitted to all training captions.")
    if study.query_bank:
        sentences.append("A query bank is made of the training pairs of its fit.")
    if study.baseline:
        sentences.append(
            f"Differences are to {study.baseline} on the same test images, with 95 % intervals of {_SAMPLES:,} "
            "bootstrap samples of the images."
        )
    sentences.append("CPU seconds include the choice of the settings, but not a query bank.")
    return " ".join(sentences)


def largest_study(name: str, scores: pd.DataFrame) -> Table:
    """Return the recalls of an alignment with the most pairs: the mean over the seeds.

    Args:
        scores: a row for each fit, as in ``scores.csv``.
    """
    largest = scores[scores["pairs"] == scores["pairs"].max()]
    rows = [
        row(str(system), *(SCORES[score].exact(runs[score].mean()) for score in TESTED))
        for system, runs in largest.groupby("system", sort=False)
    ]
    title = f"Alignment {name}: {scores['pairs'].max():,} pairs, mean over {largest['seed'].nunique()} seeds"
    return Table(title, ("system", *(SCORES[score].label for score in TESTED)), tuple(rows))


def check_pairs(
    images: FeatureStore,
    texts: FeatureStore,
    image_row: np.ndarray,
    caption_row: np.ndarray,
    say: Callable[[str], None],
) -> None:
    """Compare the features of images with those of their captions, before an alignment is fitted to them.

    Args:
        image_row, caption_row: (M,) the rows of each pair.
        say: receives the verdict.

    Raises:
        UserError: the captions belong to other images.
    """
    name = min(images.arrays, key=lambda name: len(images.arrays[name].shape))
    paired = np.unique(image_row)
    rows = paired[joints.sample_rows(len(paired))]
    used = np.flatnonzero(np.isin(image_row, rows))
    sentences = np.asarray(texts.arrays[TEXT][caption_row[used]], np.float32)
    places = np.searchsorted(rows, image_row[used])
    means = np.stack([sentences[places == place].mean(axis=0) for place in range(len(rows))])
    orders, powered = joints.row_orders(images.ids), len(rows) >= joints.LEAST_CAPTIONS
    joint = f"'{name}' and the features of captions"
    stop_if_wrong([joints.related(joint, means, images.arrays[name], rows, orders, powered)], say, texts.manifest_path)
