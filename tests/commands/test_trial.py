"""``vitcapr config check --trial``."""

from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from tests.commands.conftest import write_backbones
from vitcapr.commands import estimate
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import Experiment


def test_a_trial_takes_the_long_stages_in_turn_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(estimate, "IMAGES", 8)
    write_backbones(tmp_path)
    (tmp_path / "images").mkdir()
    lines = ["image,caption,split"]
    for number in range(16):
        Image.new("RGB", (16, 16), (15 * number, 9, 9)).save(tmp_path / "images" / f"{number:02}.png")
        lines.append(f"{number:02}.png,a dog,{'train' if number % 2 else 'val'}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    phases = [{"epochs": 2, "batch_images": 4, "learning_rate": 0.01}, {"epochs": 1, "batch_images": 4}]
    values = {
        "experiment": "x",
        "data": {"dataset": "table", "table": {"images": "images", "captions": "t.csv"}},
        "backbones": {"noise": {"source": "noise-vit", "dtype": "float32"}},
        "captioners": {"mine": {"backbone": "noise", "hidden_dim": 4, "training": {"phases": phases}}},
    }
    found = list(estimate.trial_lines(Experiment.from_config(values), Counter(train=8, validation=8)))
    assert [line.split(": ")[0] for line in found[:-1]] == ["images read", "features of noise", "training of mine"]
    assert "by a trial on 8 images" in found[-1]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "results").exists()


def test_the_demo_has_no_backbone_to_try() -> None:
    experiment = Experiment.from_config({"experiment": "x", "captioners": {"mine": {"backbone": "vit"}}})
    with pytest.raises(UserError, match="a trial needs a backbone that is trained already"):
        list(estimate.trial_lines(experiment, Counter(train=4000)))
