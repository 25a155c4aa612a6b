"""What ``vitcapr diff`` prints about two tables of scores."""

from pathlib import Path

import pandas as pd
from typer.testing import CliRunner

from vitcapr.commands import diff
from vitcapr.errors import UserError
from vitcapr.formats.scores import COLUMNS, write_summary


def summary(path: Path, **scores: float | None) -> str:
    rows = [("e", "d", "test", "m", "", metric, value, None, None, 3, "p") for metric, value in scores.items()]
    write_summary(path, pd.DataFrame(rows, columns=list(COLUMNS)))
    return str(path)


def test_scores_that_differ_are_listed_and_the_others_counted(tmp_path: Path) -> None:
    first = summary(tmp_path / "first.csv", cider=0.5, bleu_4=0.25, meteor=0.1, spice=None)
    second = summary(tmp_path / "second.csv", cider=0.75, bleu_4=0.25, spice=None)
    done = CliRunner().invoke(diff.app, [first, second])
    assert done.exit_code == 0, done.exception
    assert done.output.splitlines() == [
        f"{first} -> {second}",
        "  test m cider  0.5000 -> 0.7500  +0.2500",
        "  1 scores are the same, 1 differ; 1 only in the first, 0 only in the second",
    ]


def test_a_table_that_is_no_summary_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    done = CliRunner().invoke(diff.app, [summary(tmp_path / "first.csv", cider=0.5), str(tmp_path / "other.csv")])
    assert isinstance(done.exception, UserError)
    assert "not a summary of scores" in str(done.exception)
