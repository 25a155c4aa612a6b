"""What a run changed in the scores."""

import pandas as pd

from vitcapr.formats.scores import COLUMNS
from vitcapr.report.score_tables import new_scores


def summary(*scores: tuple[str, str, str, float | None]) -> pd.DataFrame:
    rows = [["demo", "scenes", "test", *score, None, None, 10, "p"] for score in scores]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"value": float})


def test_new_rows_and_changed_scores_are_told_and_equal_ones_are_not() -> None:
    before = summary(
        ("a", "beam", "cider", 0.5),
        ("a", "beam", "bleu_4", None),
        ("b", "", "i2t_recall_1", 0.3),
        ("c", "", "rsum", 1.0),
    )
    after = summary(
        ("a", "beam", "cider", 0.55),
        ("a", "beam", "bleu_4", None),
        ("b", "", "i2t_recall_1", 0.3),
        ("d", "", "rsum", 1.0),
    )
    assert list(new_scores(before, after)) == ["New: d (test)", "Changed: a, beam (test): CIDEr 50.00 -> 55.00"]
    assert list(new_scores(after, after)) == []


def test_many_changes_are_counted() -> None:
    names = ["bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider"]
    before, after = (summary(*(("a", "beam", name, value) for name in names)) for value in (0.1, 0.2))
    (line,) = new_scores(before, after)
    assert line.count("->") == 3
    assert line.endswith("and 2 more")
