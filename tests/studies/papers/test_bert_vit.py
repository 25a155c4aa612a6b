"""The third paper's tables: rows matched by split, bits as they are, and features before training."""

import pandas as pd

from vitcapr.studies.papers.numbers import TABLE_NAMES, read_published
from vitcapr.studies.papers.side_by_side import build_rows, side_by_side


def summary(**scores: dict[str, float]) -> pd.DataFrame:
    rows = [
        {
            "experiment": "e",
            "dataset": "pairs",
            "split": split,
            "model": "fine_tuned",
            "decoding": None,
            "metric": metric,
            "value": value,
            "low": float("nan"),
            "high": float("nan"),
            "n": 10,
            "protocol": "p",
        }
        for split, values in scores.items()
        for metric, value in values.items()
    ]
    frame = pd.DataFrame(rows)
    frame["decoding"] = ""
    return frame


def test_a_row_of_the_paper_is_compared_with_the_same_split() -> None:
    published = read_published("bert-vit")
    assert published.tables.keys() <= set(TABLE_NAMES["bert-vit"])
    builds = build_rows(summary(train={"t2i_recall_1": 0.5}, validation={"t2i_recall_1": 0.25}))
    table = side_by_side("retrieval_pairs", published, builds)
    shown = [(row[0].text, row[2].text) for row in table.rows]
    assert shown[:4] == [("paper", "86.70"), ("this build", "50.0"), ("paper", "79.60"), ("this build", "25.0")]


def test_bits_are_shown_as_they_are_before_and_after() -> None:
    builds = build_rows(summary(validation={"image_entropy": 4.5, "image_entropy_before": 4.25}))
    table = side_by_side("representation", read_published("bert-vit"), builds)
    shown = {row[1].text: row[3].text for row in table.rows if row[0].text == "this build"}
    assert [value for name, value in shown.items() if "before training" in name] == ["4.25"]
    assert "4.50" in shown.values()
    assert table.caption.startswith("Scores times 100, bits as they are;")
