"""What a tracker is told of an experiment, and what TensorBoard reads of it."""

import sys
from pathlib import Path

import pytest

from vitcapr.commands.track import main, tracked_models
from vitcapr.errors import UserError
from vitcapr.formats.model import write_card
from vitcapr.formats.training import write_history

SUMMARY = """\
experiment,dataset,split,model,decoding,metric,value,low,high,n,protocol
mine,scenes,test,lstm,beam,cider,0.5,0.4,0.6,10,words
mine,scenes,test,lstm,,recall,0.25,0.2,0.3,10,words
mine,scenes,test,other,beam,cider,0.75,0.7,0.8,10,words
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results" / "mine"
    history = [
        {"epoch": 1, "phase": "1", "train_loss": 2.0, "validation_loss": 1.5},
        {"epoch": 2, "phase": "1", "train_loss": 1.0, "validation_loss": 0.5},
    ]
    write_history(folder / "captioners" / "lstm" / "history.csv", history)
    write_card(folder / "captioners" / "lstm", {"settings": {"captioner": {"hidden_dim": 8, "seed": None}}})
    (folder / "summary.csv").write_text(SUMMARY)
    return folder


def test_curves_settings_and_scores_of_a_model(results: Path) -> None:
    (model,) = tracked_models(results)
    assert model.name == "captioners/lstm"
    assert model.curves[2] == {"train_loss": 1.0, "validation_loss": 0.5}
    assert model.settings == {"captioner.hidden_dim": "8", "captioner.seed": "null"}
    assert model.scores == {"test/beam/cider": 0.5, "test/recall": 0.25}


def test_tensorboard_reads_them_once(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for _ in range(2):
        main(results, output=tmp_path / "runs")
    assert "tensorboard --logdir" in capsys.readouterr().out
    events = accumulator.EventAccumulator(str(tmp_path / "runs" / "captioners" / "lstm")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("train_loss")] == [(1, 2.0), (2, 1.0)]
    assert [(event.step, event.value) for event in events.Scalars("score/test/beam/cider")] == [(2, 0.5)]


def test_a_tracker_that_is_missing_is_one_line(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(UserError, match=r"mlflow is not installed .*pip install 'vitcapr\[mlflow\]'"):
        main(results, to="mlflow")


def test_a_folder_without_models(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no trained model"):
        main(tmp_path)


def test_a_model_that_was_not_trained_has_its_scores(results: Path) -> None:
    write_history(results / "captioners" / "other" / "history.csv", [])
    _, other = tracked_models(results)
    assert list(other.numbers()) == [(0, {"score/test/beam/cider": 0.75})]
