import json
from pathlib import Path

import pytest

from vitcapr.errors import UserError
from vitcapr.formats.scores import read_metrics, write_metrics
from vitcapr.metrics.bootstrap import mean_measure, plain_score, ratio_measure, score_of


def test_a_score_has_its_interval_and_the_number_of_images() -> None:
    assert score_of(mean_measure([2.0, 2.0, 2.0]), 100, 0) == {"value": 2, "low": 2, "high": 2, "n": 3}


def test_a_score_of_nothing_is_null() -> None:
    nothing = {"value": None, "low": None, "high": None, "n": 0}
    assert score_of(ratio_measure([0, 0], [0, 0]), 100, 0) == nothing
    assert plain_score(float("nan"), 0) == nothing


def test_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    given = {"dataset": "d", "split": "test", "model": "m", "decoding": "beam", "protocol": "tok:ptb"}
    write_metrics(path, metrics={"cider": plain_score(1 / 3, 5)}, **given)
    assert read_metrics(path) == {
        "format": "vitcapr-metrics-1",
        "metrics": {"cider": {"value": 0.33333333, "low": None, "high": None, "n": 5}},
        **given,
    }


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "captions.json"
    path.write_text(json.dumps([{"image_id": "a"}]))
    with pytest.raises(UserError, match="not a metrics file"):
        read_metrics(path)
