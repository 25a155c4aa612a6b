from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from vitcapr.errors import UserError
from vitcapr.formats.scores import COLUMNS, collect, read_summary, tidy, write_summary
from vitcapr.metrics.caption_metric import ORACLE
from vitcapr.report.score_tables import new_scores, score_tables, scores_page


def report(model: str = "attention", decoding: str = "beam", **values: float | None) -> dict[str, Any]:
    metrics = {
        name: {"value": value, "low": None if value is None else value - 0.01, "high": value and value + 0.02, "n": 7}
        for name, value in values.items()
    }
    place = {"dataset": "scenes", "split": "test", "protocol": 'tok:ptb|refs:5,"x"'}
    return {"model": model, "decoding": decoding, "metrics": metrics, **place}


def add_experiment(path: Path, number: int) -> None:
    name = f"experiment-{number}"
    (path.parent / name).mkdir()
    collect(path, tidy([report(bleu_4=number / 100)], name), name)


def test_a_row_a_score() -> None:
    table = tidy([report(cider=0.5, bleu_4=0.25), report("baseline", cider=None)], "demo")
    assert tuple(table.columns) == COLUMNS
    assert table["metric"].tolist() == ["bleu_4", "cider", "cider"]
    assert table["model"].tolist() == ["attention", "attention", "baseline"]
    assert table.loc[0, ["value", "low", "high", "n"]].tolist() == [0.25, 0.24, 0.27, 7]
    assert table["value"].isna().tolist() == [False, False, True]
    with pytest.raises(UserError, match="cider of model 'attention', decoding 'beam' is given twice"):
        tidy([report(cider=0.5), report(cider=0.6)], "demo")


def test_written_and_read(tmp_path: Path) -> None:
    table = tidy([report("NA", "", cider=1 / 3), report("baseline", cider=None)], "demo")
    write_summary(tmp_path / "summary.csv", table)
    pd.testing.assert_frame_equal(read_summary(tmp_path / "summary.csv"), table, check_dtype=False)


def test_collecting_replaces_only_the_experiments_own_rows(tmp_path: Path) -> None:
    path = tmp_path / "summary.csv"
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    collect(path, tidy([report(bleu_4=0.2)], "deleted"), "deleted")
    collect(path, tidy([report(bleu_4=0.3, cider=0.5)], "second"), "second")
    collect(path, tidy([report(bleu_4=0.1)], "first"), "first")
    collect(path, tidy([report(bleu_4=0.4)], "second"), "second")
    table = read_summary(path)
    assert table[["experiment", "metric", "value"]].to_numpy().tolist() == [
        ["first", "bleu_4", 0.1],
        ["second", "bleu_4", 0.4],
    ]


def test_experiments_that_end_together_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "summary.csv"
    with ProcessPoolExecutor(4, mp_context=get_context("fork")) as pool:
        for waiting in [pool.submit(add_experiment, path, number) for number in range(12)]:
            waiting.result()
    assert sorted(read_summary(path)["experiment"]) == sorted(f"experiment-{number}" for number in range(12))


def test_markdown_shows_percent_and_says_so() -> None:
    text = scores_page(tidy([report(bleu_4=0.25, cider=0.5, novel_share=0.25, vocabulary_used=81)], "demo"))
    assert "### Captions against references, times 100: scenes, test split, 7 images" in text
    assert "| attention, beam | 25.0 (24.0-27.0) | 50.0 (49.0-52.0) |" in text
    assert "| attention, beam | 81 (81-81) | 25.0 (24.0-27.0) |" in text
    assert '- `tok:ptb|refs:5,"x"`' in text


def test_sections_keep_models_apart_and_leave_holes() -> None:
    first, second = score_tables(tidy([report(cider=0.5, grounding=0.5), report("a|b", cider=None)], "demo"))
    assert [[cell.shown for cell in row] for row in first.rows] == [
        ["attention, beam", "50.0 (49.0-52.0)"],
        ["a|b, beam", "-"],
    ]
    assert [row[0].text for row in second.rows] == ["attention, beam"]
    assert "a\\|b, beam" in scores_page(tidy([report("a|b", cider=0.1)], "demo"))


def experiment(*scores: tuple[str, str, str, float | None]) -> pd.DataFrame:
    rows = [["demo", "scenes", "test", *score, None, None, 10, "p"] for score in scores]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"value": float})


def test_new_rows_and_changed_scores_are_told_and_equal_ones_are_not() -> None:
    same = ("a", "beam", "bleu_4", None), ("b", "", "i2t_recall_1", 0.3)
    before = experiment(("a", "beam", "cider", 0.5), *same, ("c", "", "rsum", 1.0))
    after = experiment(("a", "beam", "cider", 0.55), *same, ("d", "", "rsum", 1.0))
    assert list(new_scores(before, after)) == ["New: d (test)", "Changed: a, beam (test): CIDEr 50.00 -> 55.00"]
    assert list(new_scores(after, after)) == []


def test_the_best_of_a_column_is_marked_and_oracles_are_not_compared() -> None:
    reports = [
        report("a", "", cider=0.5, i2t_median_rank=1, claims_true=0.5),
        report("b", "", cider=0.6, i2t_median_rank=3, claims_true=0.5),
        {**report("o", "", cider=0.9), "protocol": ORACLE},
        report("o", "", claims_true=0.9),
    ]
    best = {
        (table.columns[1], row[0].text)
        for table in score_tables(tidy(reports, "demo"))
        for row in table.rows
        if row[1].best
    }
    assert best == {("CIDEr", "b"), ("median rank", "a")}


def test_map_at_r_is_left_out_where_it_repeats_recall_at_1() -> None:
    same = {"t2i_recall_1": 0.5, "t2i_map_r": 0.5, "i2t_recall_1": 0.5, "i2t_map_r": 0.5}
    columns = [table.columns for table in score_tables(tidy([report(**same)], "demo"))]
    assert columns == [("model", "R@1", "mAP@R"), ("model", "R@1")]
    assert len([*score_tables(tidy([report(**{**same, "t2i_map_r": 0.4})], "demo"))][1].columns) == 3
