import pytest

from tests.checkpoints import printed_by
from vitcapr.commands.table import app, main
from vitcapr.errors import UserError
from vitcapr.formats.scores import tidy, write_summary


def test_markdown_and_latex_for_a_page_and_a_paper(tmp_path) -> None:
    place = {"dataset": "scenes", "split": "test", "model": "a", "decoding": "beam", "protocol": "p"}
    score = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 7}
    write_summary(tmp_path / "summary.csv", tidy([{**place, "metrics": {"cider": score}}], "demo"))
    markdown, latex = (printed_by(app, str(tmp_path), option) for option in ("--markdown", "--latex"))
    assert "| a, beam | 50.0 (40.0-60.0) |" in markdown
    assert r"a, beam & 50.0 (40.0-60.0) \\" in latex
    assert r"\label{tab:references_test}" in latex
    with pytest.raises(UserError, match="exclude each other"):
        main(tmp_path, markdown=True, latex=True)
