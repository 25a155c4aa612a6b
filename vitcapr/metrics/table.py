"""The scores as people read them: a row a model, a column a score."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

HEADLINE = {
    "bleu_1": "BLEU-1",
    "bleu_2": "BLEU-2",
    "bleu_3": "BLEU-3",
    "bleu_4": "BLEU-4",
    "meteor": "METEOR",
    "rouge_l": "ROUGE-L",
    "cider": "CIDEr",
    "spice": "SPICE",
}
"""Scores against references, which papers print times 100."""

GROUNDING = {
    "grounding": "attention on object",
    "grounding_chance": "by chance",
    "pointing_game": "pointing game",
    "pointing_game_chance": "by chance",
    "object_hallucination": "objects made up",
}
LANGUAGE = {
    "length_mean": "words a caption",
    "distinct_1": "distinct-1",
    "distinct_2": "distinct-2",
    "vocabulary_used": "words used",
    "novel_share": "unseen captions",
    "dangling_share": "dangling endings",
    "identical_captions": "captions shared",
}
_COUNTS = {"vocabulary_used", "identical_captions"}


class Section(NamedTuple):
    """One table: models by scores, as text."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def sections(summary: pd.DataFrame, intervals: bool = True) -> Iterator[Section]:
    """The tables that ``summary`` (see :mod:`vitcapr.metrics.summary`) holds scores for, per data set and split."""
    for (dataset, split), part in summary.groupby(["dataset", "split"], sort=False):
        images = int(part["n"].max())
        place = f"{dataset}, {split} split, {images} images"
        bounds = ", 95 % interval" if intervals else ""
        for title, names, percent in (
            (f"Captions against references (x 100): {place}{bounds}", HEADLINE, True),
            (f"Attention and objects (%): {place}{bounds}", GROUNDING, True),
            (f"Language of the captions: {place}", LANGUAGE, False),
        ):
            shown = {name: label for name, label in names.items() if name in set(part["metric"])}
            if shown:
                rows = _rows(part, list(shown), percent, intervals and percent)
                yield Section(title, ["model", "decoding", *shown.values()], rows)


def markdown(summary: pd.DataFrame) -> str:
    """All tables in Markdown, each followed by the protocol of its scores."""
    parts = []
    for section in sections(summary):
        parts.append(f"**{section.title}**\n")
        parts.append(_markdown_row(section.columns))
        parts.append(_markdown_row(["---", "---", *["---:"] * (len(section.columns) - 2)]))
        parts.extend(_markdown_row(row) for row in section.rows)
        parts.append("")
    parts.append("Protocols:\n")
    for protocol in summary["protocol"].drop_duplicates():
        parts.append(f"- `{protocol}`")
    return "\n".join(parts) + "\n"


def _rows(part: pd.DataFrame, metrics: Sequence[str], percent: bool, intervals: bool) -> list[list[str]]:
    rows = []
    for (model, decoding), scores in part.groupby(["model", "decoding"], sort=False):
        of_metric = {score["metric"]: score for score in scores.to_dict("records")}
        if not of_metric.keys() & set(metrics):
            continue
        cells = [_cell(of_metric[name], name, percent, intervals) if name in of_metric else "" for name in metrics]
        rows.append([str(model), str(decoding), *cells])
    return rows


def _cell(score: Mapping[Hashable, Any], name: str, percent: bool, intervals: bool) -> str:
    if pd.isna(score["value"]):
        return "-"
    if name in _COUNTS:
        return f"{score['value']:.0f}"
    if not percent:
        return f"{score['value']:.2f}"
    text = f"{100 * score['value']:.1f}"
    if intervals and not pd.isna(score["low"]):
        text += f" ({100 * score['low']:.1f}-{100 * score['high']:.1f})"
    return text


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
