"""A metric, a captioner and a backbone reader in the folder of a study work as those of the package do."""

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file

from tests.forks import snakemake_forks
from vitcapr.errors import UserError
from vitcapr.pipeline.code import job_code
from vitcapr.plugins import plugins

REPOSITORY = Path(__file__).parents[1]
METRIC = """
from vitcapr.metrics.base import CaptionMetric
from vitcapr.metrics.bootstrap import mean_measure

from ._counting import words_in

LABELS = {"words_here": {"label": "words here", "group": "references", "scale": 1}}
METRIC = CaptionMetric(
    measure=lambda captions: {"words_here": mean_measure([words_in(text) for text in captions.written])},
    protocol="words_here:all",
)
"""
CAPTIONER = '''
from typing import Literal

from vitcapr.config.captioner import WordCaptionerConfig
from vitcapr.models.lstm_captioners import BaselineCaptioner


class Config(WordCaptionerConfig):
    attends = False

    architecture: Literal["louder"] = "louder"
    gain: float = 2.0
    """What the image is multiplied by."""


class Louder(BaselineCaptioner):
    def __init__(self, *, gain: float, **sizes) -> None:
        super().__init__(**sizes)
        self.gain = gain

    def encode(self, features):
        return {"image": self.gain * super().encode(features)["image"]}


CAPTIONER = Louder
'''
ENCODER = '''
import torch


class Means:
    """The mean colour of each quarter of the picture."""

    image_size = (16, 16)

    def __init__(self, folder, *, size, dtype, device):
        self.model, self.dtype, self.device = torch.nn.Identity(), dtype, device
        self.grid, self.shapes = (2, 2), {"patches": (4, 3), "cls": (3,)}

    def features(self, pixels):
        patches = torch.nn.functional.adaptive_avg_pool2d(pixels, 2).flatten(2).mT
        return {"patches": patches, "cls": patches.mean(1)}


ENCODER = Means
'''
CONFIG = """
experiment: louder
captioners: {mine: {backbone: vit, architecture: louder, gain: 3.0}}
metrics: {caption: [bleu, words_here]}
run: {captioners: [mine]}
"""
PROGRAM = """
import vitcapr
from vitcapr.config.reference import parameters_text
from vitcapr.metrics.labels import COLUMNS

assert "gain" in parameters_text() and "What the image is multiplied by." in parameters_text()
assert COLUMNS["words_here"].label == "words here"
data = vitcapr.prepare_data("photographs", "captions.csv", "study/data")
words = vitcapr.build_vocabulary(data, "study/text", vocabulary={"min_count": 1})
features = vitcapr.extract(data, "colours", "study/features/colours", kind="means", dtype="float32")
assert vitcapr.open_features(features)["patches"].shape == (8, 4, 3)
captioner = vitcapr.train_captioner(
    data, features, words, "study/captioners/mine", architecture="louder", gain=3.0, training={"phases": {"epochs": 1}}
)
captions = vitcapr.decode(captioner, "test", "study/captions/test.json")
opened = vitcapr.load_captioner(captioner)
assert opened.caption("photographs/3.png")[0].caption
references = {path: ["a dog"] for path in ("3.png", "7.png")}
scored = vitcapr.evaluate(captions, references, metrics=["words_here"])
assert scored.scores["metric"].tolist() == ["words_here"] and "words_here:all" in scored.protocol
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "plugins").mkdir()
    for name, text in {"words_here": METRIC, "louder": CAPTIONER, "means": ENCODER}.items():
        (tmp_path / "plugins" / f"{name}.py").write_text(text)
    (tmp_path / "plugins" / "_counting.py").write_text("def words_in(text):\n    return len(text.split())\n")
    (tmp_path / "plugins" / "no_plugin.py").write_text("raise RuntimeError('this file is not run')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_they_work_from_photographs_to_scores(study: Path) -> None:
    draw = np.random.default_rng(0)
    (study / "photographs").mkdir()
    rows = ["image,caption,split"]
    for number in range(8):
        Image.fromarray(draw.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(study / f"photographs/{number}.png")
        rows.append(
            f"{number}.png,A {('dog', 'cat')[number % 2]}.,{('train', 'train', 'validation', 'test')[number % 4]}"
        )
    (study / "captions.csv").write_text("\n".join(rows))
    (study / "colours").mkdir()
    (study / "colours" / "config.json").write_text("{}")
    save_file({"nothing": np.zeros(1, np.float32)}, study / "colours" / "model.safetensors")
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=study, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("stage", "settings", "counted"),
    [
        ("score", {"metrics": {"caption": ["bleu", "words_here"]}}, {"plugins/words_here.py", "plugins/_counting.py"}),
        ("score", {"metrics": {"caption": ["bleu"]}}, set()),
        ("train_captioner", {"captioner": {"architecture": "louder"}}, {"plugins/louder.py"}),
        ("train_captioner", {"captioner": {"architecture": "baseline"}}, set()),
        ("extract", {"backbone": {"kind": "means"}}, {"plugins/means.py"}),
        ("extract", {"backbone": {"kind": "auto", "source": "means"}}, set()),
    ],
)
@pytest.mark.usefixtures("study")
def test_the_code_of_a_job_counts_the_plugins_that_it_uses(
    stage: str, settings: dict[str, object], counted: set[str]
) -> None:
    code = job_code(f"vitcapr.stages.{stage}", settings)
    assert {name for name in code if name.startswith("plugins/")} == counted


def test_the_release_of_a_library_is_that_of_its_distribution(study: Path) -> None:
    path = study / "plugins" / "words_here.py"
    path.write_text("import dateutil\nfrom . import _counting\n" + path.read_text())
    code = job_code("vitcapr.stages.score", {"metrics": {"caption": ["words_here"]}})
    assert code["dateutil"] == importlib.metadata.version("python-dateutil")


def test_an_entry_point_is_a_plugin(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.move(study / "plugins" / "means.py", study / "their_encoder.py")
    monkeypatch.syspath_prepend(study)
    point = importlib.metadata.EntryPoint("colour", "their_encoder", "vitcapr.plugins")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point] if group == point.group else [])
    assert set(plugins("ENCODER")) == {"colour"}
    assert plugins("ENCODER")["colour"].load().image_size == (16, 16)


def test_the_rules_take_a_metric(study: Path) -> None:
    """A dry run reads the configuration, and checks every rule against its stage."""
    assert snakemake_forks().run("-m", "vitcapr", "init", "mine", folder=study).returncode == 0
    shutil.move(study / "plugins", study / "mine" / "plugins")
    config = study / "mine" / "louder.yaml"
    config.write_text(CONFIG)
    command = ("-m", "snakemake", "-n", "--nocolor", "--configfile", config.name)
    done = snakemake_forks().run(*command, folder=config.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    config.write_text(CONFIG.replace("words_here", "words_heer").replace("gain", "gian"))
    done = snakemake_forks().run(*command, folder=config.parent)
    assert "words_here" in done.stderr
    assert "did you mean 'captioners.mine.gain'" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [("METRIC = (", "is not Python"), ("METRIC = 1\nimport nothing_here", "No module named 'nothing_here'")],
)
def test_a_wrong_file_is_one_line(study: Path, text: str, said: str) -> None:
    (study / "plugins" / "wrong.py").write_text(text)
    with pytest.raises(UserError, match=said):
        plugins("METRIC")["wrong"].load()
