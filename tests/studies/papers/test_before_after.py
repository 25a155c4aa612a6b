from typing import Any

from vitcapr.formats.tables import Table
from vitcapr.studies.papers.changes import before_and_after


def comparison(before: str, after: str) -> dict[str, Any]:
    sides = [dict(zip(("model", "decoding"), key.split("/"), strict=True)) for key in (before, after)]
    row = {"before": 0.5, "after": 0.53, "difference": 0.03, "low": 0.01, "high": 0.05, "p_value": 0.002}
    return {
        "format": "vitcapr-comparison-1",
        "dataset": "flickr8k",
        "split": "test",
        "before": {**sides[0], "protocol": "tok:ptb"},
        "after": {**sides[1], "protocol": "tok:ptb"},
        "metrics": {
            "cider": {**row, "verdict": "higher"},
            "vocabulary_used": {
                **{"before": 300, "after": 290, "difference": -10, "low": None, "high": None},
                **{"p_value": None, "verdict": "not tested"},
            },
        },
        "protocol": "paired",
    }


def shown(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_a_comparison_is_a_row_a_score() -> None:
    table = before_and_after("reranking", [comparison("attention/beam", "attention/reranked")])
    place = "attention/beam → attention/reranked (flickr8k, test)"
    assert shown(table) == [
        [place, "CIDEr", "50.00", "53.00", "+3.00", "+1.00 to +5.00", "0.002", "higher"],
        [place, "words used", "300", "290", "-10", "-", "-", "not tested"],
    ]
    assert "Protocol: tok:ptb; paired." in table.caption


def test_two_captioners_are_training_and_two_decodings_are_reranking() -> None:
    both = [comparison("a/beam", "a/reranked"), comparison("a_cross_entropy/beam", "a/beam")]
    assert {row[0] for row in shown(before_and_after("reranking", both))} == {"a/beam → a/reranked (flickr8k, test)"}
    assert {row[0] for row in shown(before_and_after("self-critical training", both))} == {
        "a_cross_entropy/beam → a/beam (flickr8k, test)"
    }


def test_a_missing_run_is_stated() -> None:
    for change in ("reranking", "self-critical training"):
        table = before_and_after(change, [])
        assert shown(table) == [["-"] * 8]
        assert "This build has no such run here." in table.caption
