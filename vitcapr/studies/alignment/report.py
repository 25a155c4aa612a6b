"""The tables of a study."""

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from vitcapr.formats.tables import NOTHING, Cell, Table, row
from vitcapr.metrics.labels import COLUMNS as SCORES
from vitcapr.studies.alignment.inputs import WORDS
from vitcapr.studies.alignment.likeness import Likeness
from vitcapr.studies.alignment.study import COMPARED, Study

_TESTED = ("i2t_recall_1", "t2i_recall_1")


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


def likeness_table(fits: Mapping[str, Likeness]) -> Table:
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
