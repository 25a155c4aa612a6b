"""The command paper_tables on a summary of a few scores."""

import csv
from pathlib import Path

import pandas as pd
import pytest

from vitcapr.extensions.papers.published import TABLE_NAMES
from vitcapr.extensions.papers.stages.paper_tables import paper_tables
from vitcapr.formats.scores import COLUMNS, write_summary
from vitcapr.pipeline.run import run_stage


@pytest.fixture
def summary(tmp_path: Path) -> Path:
    scores = [("baseline", "greedy", "bleu_4", 0.19), ("paper", "", "i2t_recall_1", 0.3)]
    rows = [
        ("demo", "flickr8k", "test", model, decoding, metric, value, value - 0.01, value + 0.01, 1000, "tok:ptb|<1>")
        for model, decoding, metric, value in scores
    ]
    write_summary(tmp_path / "summary.csv", pd.DataFrame(rows, columns=list(COLUMNS)))
    return tmp_path / "summary.csv"


def write(summary: Path, folder: Path, log: Path | None = None) -> None:
    endings = {"page": "md", "latex": "tex", "numbers": "csv", "section": "json"}
    files = {name: folder / f"vitcap-r.{ending}" for name, ending in endings.items()}
    run_stage(paper_tables, summary=summary, paper="vitcap-r", log=log, **files | {"page": [files["page"]]})


def test_the_page_has_every_table(summary: Path, tmp_path: Path) -> None:
    write(summary, tmp_path / "tables", log=tmp_path / "log")
    assert "7 tables beside vitcap-r" in (tmp_path / "log").read_text()

    page = (tmp_path / "tables" / "vitcap-r.md").read_text()
    assert "| this build | baseline/greedy | - | - | - | 19.0 (18.0-20.0) | - | - | - | test split [" in page
    assert "| this build | retriever paper | 30.0 (29.0-31.0) |" in page
    for name in TABLE_NAMES["vitcap-r"]:
        assert (tmp_path / "tables" / f"{name}.md").read_text() in page
        assert (tmp_path / "tables" / f"{name}.tex").read_text() in (tmp_path / "tables" / "vitcap-r.tex").read_text()


def test_every_published_number_as_printed(summary: Path, tmp_path: Path) -> None:
    write(summary, tmp_path)
    with (tmp_path / "vitcap-r.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    by_place = {(row["table"], row["system"], row["metric"]): row for row in rows}
    number = by_place["retrieval_flickr8k", "dual encoder", "i2t_recall_10"]
    assert [number[key] for key in ("printed", "unit", "value", "from")] == [
        "1.02", "percent", "0.0102", "section IV-B.2",
    ]  # fmt: skip
    assert "pool is not said" in number["notes"]
