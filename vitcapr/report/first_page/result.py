"""The result of an experiment in a few sentences, and one picture with attention."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vitcapr.formats.captions import read_attention
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.scores import read_comparison
from vitcapr.formats.tables import Table
from vitcapr.metrics.base import ORACLE
from vitcapr.metrics.bootstrap import NOT_SHOWN
from vitcapr.metrics.labels import COLUMNS
from vitcapr.metrics.spread import Seeded, paired, spread
from vitcapr.report.figures.attention import attended_words
from vitcapr.report.figures.examples import Choice, choose_attended, open_images
from vitcapr.report.figures.style import png_bytes
from vitcapr.report.first_page.content import Picture
from vitcapr.report.score_tables import spread_tables

_CAPTION_SCORES = ("cider", "meteor", "rouge_l", "bleu_4")
_RETRIEVAL_SCORES = ("t2i_recall_1", "i2t_recall_1")
_DPI = 110


def sentences(summary: pd.DataFrame, split: str, comparisons: Sequence[Path]) -> list[str]:
    """The best captioner and the best retrieval model of a split, and the paired gain of every reranking.

    An oracle, which chooses its captions with the references, is never the best.
    """
    part = summary[summary["split"] == split]
    kinds = ((_CAPTION_SCORES, "captions"), (_RETRIEVAL_SCORES, "retrieval"))
    lines = [_best(part, names, kind) for names, kind in kinds]
    lines += [_gain(read_comparison(path)) for path in comparisons]
    return list(filter(None, lines))


def seed_tables(summary: pd.DataFrame, models: Mapping[str, Seeded]) -> list[Table]:
    """Mean and spread over the seeds of each model, and models in pairs; none without models of several seeds."""
    return spread_tables(spread(summary, models), paired(summary, models)) if models else []


def _best(summary: pd.DataFrame, names: Sequence[str], kind: str) -> str:
    """The system with the highest of the first of the scores that the summary has."""
    for name in names:
        every = summary[summary["metric"] == name]
        scores = every[~every["protocol"].str.startswith(ORACLE)]
        left_out = len(every) - len(scores)
        if len(scores):
            first = scores.sort_values("value", ascending=False, kind="stable").iloc[0].to_dict()
            system = ", ".join(filter(None, (first["model"], first["decoding"])))
            among = f"the highest of {len(scores)} systems" if len(scores) > 1 else "the only system"
            among += ", the oracle left out" if left_out else ""
            column = COLUMNS[name]
            return f"Best {kind}: {system} with {column.label} {column.cell(first).shown}, {among}."
    return ""


def _gain(comparison: Mapping[str, Any]) -> str:
    """The difference of a comparison in its first score; empty without one, and for an oracle."""
    before, after = comparison["before"], comparison["after"]
    name = next((name for name in _CAPTION_SCORES if name in comparison["metrics"]), None)
    if name is None or after["protocol"].startswith(ORACLE):
        return ""
    one, column = comparison["metrics"][name], COLUMNS[name]
    difference = column.difference(one["difference"], one["low"], one["high"]).shown
    finding = "" if one["verdict"] != NOT_SHOWN else f": {NOT_SHOWN}"
    systems = [", ".join(filter(None, (side["model"], side["decoding"]))) for side in (after, before)]
    return f"Gain of {systems[0]} over {systems[1]}, on the same images: {column.label} {difference}{finding}."


def attention_picture(
    data: Manifest, split: str, captions: Mapping[str, Path], attention: Mapping[str, Path]
) -> Picture | None:
    """An image under the attention of the first system that stored it, for every word of its caption."""
    name = next((name for name in attention if name in captions), None)
    if name is None:
        return None
    table = read_attention(attention[name])
    row, caption, weights = choose_attended(data, split, captions[name], table, Choice(1))[0]
    with open_images(data) as read:
        image = read(row)
    return Picture(
        png_bytes(attended_words(image, caption.tokens, weights), _DPI),
        f"Attention of {name} at each word of the caption: {caption.caption}",
        "png",
    )
