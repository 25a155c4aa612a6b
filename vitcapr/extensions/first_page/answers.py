"""The answers at the head of the first page: the best captions, the best retrieval, and the differences shown."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from vitcapr.extensions.first_page.run_history import Entry, last_changes, main_scores
from vitcapr.metrics.bootstrap import NOT_SHOWN
from vitcapr.metrics.caption_metric import ORACLE
from vitcapr.metrics.labels import COLUMNS

_CAPTION_SCORES = ("cider", "meteor", "rouge_l", "bleu_4")
_RECALLS = ("t2i_recall_1", "i2t_recall_1")
_LISTED = 3
"""Differences in sentences; the plot has all."""


class Answer(NamedTuple):
    """A card of the first page: a title, a number as it is printed with its interval, and sentences."""

    title: str
    number: str
    interval: str
    sentences: Sequence[str]


def answers(summary: pd.DataFrame, split: str, differences: pd.DataFrame | None) -> list[Answer]:
    """Summarise the best captioner and retrieval model of a split, and the paired differences that are shown.

    An oracle, which chooses its captions with the references, is never the best.
    """
    part = summary[summary["split"] == split]
    cards = [_captions(part), _retrieval(part)]
    if differences is not None and len(differences):
        cards.append(_shown(differences))
    return [card for card in cards if card is not None]


def _captions(summary: pd.DataFrame) -> Answer | None:
    for name in _CAPTION_SCORES:
        every = summary[summary["metric"] == name]
        scores = every[~every["protocol"].str.startswith(ORACLE)]
        if len(scores):
            first = scores.sort_values("value", ascending=False, kind="stable").iloc[0]
            system = ", ".join(filter(None, (first["model"], first["decoding"])))
            oracle = ", the oracle left out" if len(every) > len(scores) else ""
            own = summary[(summary["model"] == first["model"]) & (summary["decoding"] == first["decoding"])]
            others = [
                _capital(f"{COLUMNS[one['metric']].label}: {COLUMNS[one['metric']].cell(one).shown}.")
                for one in own.to_dict("records")
                if one["metric"] != name and one["metric"] in COLUMNS and COLUMNS[one["metric"]].main
            ]
            cell = COLUMNS[name].cell(first.to_dict())
            number = f"{COLUMNS[name].label} {cell.text}"
            return Answer("Captions", number, cell.interval, [f"{system}, {_among(len(scores))}{oracle}.", *others])
    return None


def _retrieval(summary: pd.DataFrame) -> Answer | None:
    """Summarise the model with the highest sum of both R@1."""
    scores = summary[summary["metric"].isin(_RECALLS)]
    sums = scores.groupby("model", sort=False)["value"].sum()
    if sums.empty:
        return None
    model = sums.idxmax()
    own = scores[scores["model"] == model].set_index("metric").to_dict("index")
    first, *others = (COLUMNS[name] for name in _RECALLS if name in own)
    cell = first.cell(own[first.name])
    rest = [f"{column.label}: {column.cell(own[column.name]).shown}." for column in others]
    basis = "by the sum of both R@1 " if len(sums) > 1 else ""
    return Answer(
        "Retrieval", f"{first.label} {cell.text}", cell.interval, [f"{model}, {basis}{_among(len(sums))}.", *rest]
    )


def _among(count: int) -> str:
    return f"the highest of {count} systems" if count > 1 else "the only system"


def _shown(differences: pd.DataFrame) -> Answer:
    """List the differences shown after the correction, whichever score shows them."""
    shown = differences[differences["verdict"] != NOT_SHOWN]
    tests = f"{len(differences)} paired tests" if len(differences) > 1 else "1 paired test"
    sentences = [_capital(f"{_sentence(one)}.") for one in shown.to_dict("records")[:_LISTED]]
    if len(shown) > _LISTED:
        sentences.append(f"{len(shown) - _LISTED} more below.")
    if others := len(differences) - len(shown):
        sentences.append(f"{NOT_SHOWN.capitalize()} by the other {others}." if len(shown) else "The plot has them.")
    return Answer("Differences", f"{len(shown)} of {len(differences)} shown", f"corrected for {tests}", sentences)


def since_the_last_run(runs: Sequence[Entry], split: str) -> list[Answer]:
    """Summarise the changes of the scores since the run before, and the keys that differ; empty for a first run."""
    if len(runs) < 2:
        return []
    changes = last_changes(runs, split)
    before, after = (main_scores(run, split).keys() for run in runs[-2:])
    new, gone = ([system for system, _ in sorted(some)] for some in (after - before, before - after))
    listed = [f"{name}: {', '.join(dict.fromkeys(some))}." for name, some in (("New", new), ("Gone", gone)) if some]
    keys = [*runs[-1].changes[:_LISTED], *([f"{len(left)} more"] if (left := runs[-1].changes[_LISTED:]) else [])]
    keys_changed = f"Changed: {'; '.join(keys) or 'nothing'}."
    if not changes:
        return [Answer("Since the last run", "No main score changed", "", [keys_changed, *listed])]
    first, *others = changes
    column = COLUMNS[first.metric]
    pair = column.difference(*first.paired) if first.paired else None
    interval = f"paired {pair.text}, {pair.interval}" if pair else "not paired"
    rest = [f"{change}." for change in others[: _LISTED - 1]]
    return [
        Answer(
            "Since the last run",
            f"{column.label} {first.scores}",
            interval,
            [f"{first.system}.", *rest, keys_changed, *listed],
        )
    ]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _sentence(one: Mapping[Hashable, Any]) -> str:
    column = COLUMNS[str(one["metric"])]
    cell = column.difference(one["difference"], one["low"], one["high"])
    return f"{column.label} {cell.shown}, {one['after']} against {one['before']} (corrected p {one['adjusted']:.3f})"
