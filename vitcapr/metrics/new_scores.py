"""What a run changed in the scores of an experiment."""

from collections.abc import Iterator

import pandas as pd

from vitcapr.metrics.labels import COLUMNS

SHOWN = 3
"""Changed scores of a row that are named."""
_ROW = ["dataset", "split", "model", "decoding"]


def new_scores(before: pd.DataFrame, after: pd.DataFrame) -> Iterator[str]:
    """A line for all rows of the tables that are new, and one for each row whose scores changed.

    Args:
        before, after: the summaries before and after the run (:mod:`vitcapr.formats.scores`).
    """
    old = {key: dict(zip(part["metric"], part["value"], strict=True)) for key, part in before.groupby(_ROW, sort=False)}
    added, changed = [], []
    for key, part in after.groupby(_ROW, sort=False):
        _, split, model, decoding = key
        name = f"{model}, {decoding} ({split})" if decoding else f"{model} ({split})"
        if key not in old:
            added.append(name)
            continue
        scores = dict(zip(part["metric"], part["value"], strict=True))
        found = []
        for column in COLUMNS.values():
            was, now = (column.exact(of.get(column.name)).shown for of in (old[key], scores))
            if column.group is not None and was != now:
                found.append(f"{column.label} {was} -> {now}")
        if found:
            more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
            changed.append(f"Changed: {name}: {', '.join(found[:SHOWN])}{more}")
    if added:
        yield f"New: {'; '.join(added)}"
    yield from changed
