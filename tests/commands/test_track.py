"""What TensorBoard reads of an experiment."""

import sys
from pathlib import Path

import pytest

from vitcapr.commands.track import main
from vitcapr.errors import UserError
from vitcapr.formats.model import write_card
from vitcapr.formats.training import write_history

SUMMARY = """\
experiment,dataset,split,model,decoding,metric,value,low,high,n,protocol
mine,scenes,test,lstm,beam,cider,0.5,0.4,0.6,10,words
mine,scenes,test,raw,,recall,0.25,0.2,0.3,10,words
"""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results" / "mine"
    history = [
        {"epoch": 1, "phase": "1", "train_loss": 2.0, "validation_loss": 1.5},
        {"epoch": 2, "phase": "1", "train_loss": 1.0, "validation_loss": 0.5},
    ]
    write_history(folder / "captioners" / "lstm" / "history.csv", history)
    write_history(folder / "retrievers" / "raw" / "history.csv", [])
    write_card(folder / "captioners" / "lstm", {"settings": {"captioner": {"hidden_dim": 8, "seed": None}}})
    (folder / "summary.csv").write_text(SUMMARY)
    return folder


def test_tensorboard_reads_curves_settings_and_scores_once(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for _ in range(2):
        main(results, output=tmp_path / "runs")
    assert "2 models of mine: tensorboard --logdir" in capsys.readouterr().out
    events = accumulator.EventAccumulator(str(tmp_path / "runs" / "captioners" / "lstm")).Reload()
    assert [(event.step, event.value) for event in events.Scalars("train_loss")] == [(1, 2.0), (2, 1.0)]
    assert [(event.step, event.value) for event in events.Scalars("score/test/beam/cider")] == [(2, 0.5)]
    (settings,) = events.Tensors("settings/text_summary")[0].tensor_proto.string_val
    assert settings == b"    captioner.hidden_dim: 8\n    captioner.seed: null"
    untrained = accumulator.EventAccumulator(str(tmp_path / "runs" / "retrievers" / "raw")).Reload()
    assert [(event.step, event.value) for event in untrained.Scalars("score/test/recall")] == [(0, 0.25)]


def test_mistakes_are_one_line(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no trained model"):
        main(tmp_path)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserError, match=r"tensorboard is not installed; pip install 'vitcapr\[tensorboard\]'"):
        main(results)
