"""``vitcapr train_captioner``: what it writes of the training."""

from pathlib import Path

from vitcapr.building.captioner import history_with_rewards
from vitcapr.config.captioner import CaptionerPhaseConfig
from vitcapr.formats.training import write_history


def test_a_reward_is_not_written_as_a_loss(tmp_path: Path) -> None:
    phases = [CaptionerPhaseConfig(epochs=1), CaptionerPhaseConfig(epochs=1, objective="self_critical")]
    history = [
        {"epoch": 1, "phase": 1, "train_loss": 2.5, "validation_loss": 2.0},
        {"epoch": 2, "phase": 2, "train_loss": -1.5, "validation_loss": 2.25},
    ]
    write_history(tmp_path / "history.csv", history_with_rewards(history, phases))
    assert (tmp_path / "history.csv").read_text().splitlines() == [
        "epoch,phase,train_loss,train_reward,validation_loss",
        "1,1,2.5,,2.0",
        "2,2,,1.5,2.25",
    ]
    assert "train_reward" not in history_with_rewards(history[:1], phases[:1])[0]
