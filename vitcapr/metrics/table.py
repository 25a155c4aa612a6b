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
FACTS = {
    "facts_true": "true captions",
    "facts_told": "facts told",
    "facts_objects": "objects",
    "facts_counts": "counts",
    "facts_colors": "colours",
    "facts_relations": "relations",
}
"""The harder kinds; all stand in the summary. See :mod:`vitcapr.metrics.facts`."""
LANGUAGE = {
    "length_mean": "words each",
    "distinct_2": "distinct pairs",
    "vocabulary_used": "words used",
    "novel_share": "unseen captions",
    "dangling_share": "dangling endings",
    "identical_captions": "shared captions",
}
IMAGE_TO_TEXT = {
    "i2t_recall_1": "R@1",
    "i2t_recall_5": "R@5",
    "i2t_recall_10": "R@10",
    "i2t_median_rank": "median rank",
    "i2t_map_r": "mAP@R",
}
TEXT_TO_IMAGE = {
    "t2i_recall_1": "R@1",
    "t2i_recall_5": "R@5",
    "t2i_recall_10": "R@10",
    "t2i_median_rank": "median rank",
    "t2i_map_r": "mAP@R",
    "rsum": "rsum, both",
}
"""The last one is the sum of the Recalls of both directions."""
BITS = {
    "caption_entropy": "H(text)",
    "image_entropy": "H(image)",
    "caption_spectral_entropy": "spectral H(text)",
    "image_spectral_entropy": "spectral H(image)",
    "caption_match_information": "I(text; match)",
    "image_match_information": "I(image; match)",
    "shared_information": "I(text; image)",
}
"""Of embeddings; see :mod:`vitcapr.metrics.information`."""
HIGHER, LOWER, NOT_SHOWN, NOT_TESTED = "higher", "lower", "no difference shown", "not tested"
"""What an interval says of a difference."""
RANKS = {"i2t_median_rank", "t2i_median_rank", "i2t_mean_rank", "t2i_mean_rank"}
COUNTS = {"vocabulary_used", "identical_captions"}


class Cell(NamedTuple):
    """A score as text, and its interval where it has one."""

    value: str
    low: str = ""
    high: str = ""


class Section(NamedTuple):
    """One table: models by scores."""

    title: str
    columns: list[str]
    models: list[str]
    """What each row is of: model and decoding."""
    cells: list[list[Cell]]


def sections(summary: pd.DataFrame) -> Iterator[Section]:
    """The tables that ``summary`` (see :mod:`vitcapr.metrics.summary`) holds scores for, per data set and split."""
    for (dataset, split), part in summary.groupby(["dataset", "split"], sort=False):
        for title, names, percent in (
            ("Captions against references, x 100", HEADLINE, True),
            ("Image to text, percent and ranks", IMAGE_TO_TEXT, True),
            ("Text to image, percent and ranks", TEXT_TO_IMAGE, True),
            ("Attention and objects, in percent", GROUNDING, True),
            ("Claims of the captions that are right, in percent", FACTS, True),
            ("Language of the captions, as fractions and counts", LANGUAGE, False),
        ):
            shown = {name: label for name, label in names.items() if name in set(part["metric"])}
            if not shown:
                continue
            images = part["n"][part["metric"].isin(list(shown))].max()
            place = f"{dataset}, {split} split, {int(images)} images"
            models, cells = [], []
            for (model, decoding), scores in part.groupby(["model", "decoding"], sort=False):
                of_metric = {score["metric"]: score for score in scores.to_dict("records")}
                if of_metric.keys() & shown.keys():
                    models.append(f"{model}, {decoding}" if decoding else str(model))
                    cells.append([_cell(of_metric.get(name), name, percent) for name in shown])
            yield Section(f"{title}: {place}", list(shown.values()), models, cells)


def markdown(summary: pd.DataFrame) -> str:
    """All tables in Markdown with 95 % intervals, and the protocols of the scores."""
    lines = []
    for section in sections(summary):
        lines += [f"**{section.title}**", "", markdown_row(["model", *section.columns])]
        lines.append(markdown_row(["---", *["---:"] * len(section.columns)]))
        for model, cells in zip(section.models, section.cells, strict=True):
            texts = [f"{cell.value} ({cell.low}-{cell.high})" if cell.low else cell.value for cell in cells]
            lines.append(markdown_row([model, *texts]))
        lines.append("")
    lines += ["In parentheses: 95 % intervals, by resampling images. Protocols:", ""]
    lines += [f"- `{protocol}`" for protocol in summary["protocol"].drop_duplicates()]
    return "\n".join(lines) + "\n"


def _cell(score: Mapping[Hashable, Any] | None, name: str, percent: bool) -> Cell:
    if score is None or pd.isna(score["value"]):
        return Cell("-")
    if name in COUNTS:
        return Cell(f"{score['value']:.0f}")
    if not percent:
        return Cell(f"{score['value']:.2f}")
    scale = 1 if name in RANKS else 100
    value = f"{scale * score['value']:.1f}"
    if pd.isna(score["low"]):
        return Cell(value)
    return Cell(value, f"{scale * score['low']:.1f}", f"{scale * score['high']:.1f}")


def verdict(low: float, high: float) -> str:
    """Of a difference with such an interval."""
    if low > 0:
        return HIGHER
    return LOWER if high < 0 else NOT_SHOWN


def markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
