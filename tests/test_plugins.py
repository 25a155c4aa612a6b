"""The metric, the captioner and the backbone reader of docs/plugins.md work as those of the package do."""

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.data_sets import write_noise
from tests.docs.blocks import blocks_of
from tests.forks import snakemake_forks
from vitcapr.errors import UserError
from vitcapr.pipeline.code import job_code
from vitcapr.plugins import plugins

REPOSITORY = Path(__file__).parents[1]
EXAMPLES = ("exact_match", "louder", "means")
"""The plugins that docs/plugins.md shows."""
CONFIG = """
experiment: louder
captioners: {mine: {backbone: vit, architecture: louder, gain: 3.0}}
metrics: {caption: [bleu, exact_match]}
run: {captioners: [mine]}
"""
PROGRAM = """
import vitcapr
from vitcapr.config.reference import parameters_text
from vitcapr.metrics.labels import COLUMNS

assert "gain" in parameters_text() and "What the image is multiplied by." in parameters_text()
assert COLUMNS["exact_match"].label == "exact match"
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
scored = vitcapr.evaluate(captions, references, metrics=["exact_match"])
assert scored.scores["metric"].tolist() == ["exact_match"] and "exact_match:any" in scored.protocol
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "plugins").mkdir()
    shown = [block.text for block in blocks_of(REPOSITORY / "docs/plugins.md") if block.language == "python"]
    for name, text in zip(EXAMPLES, shown, strict=True):
        (tmp_path / "plugins" / f"{name}.py").write_text(text)
    (tmp_path / "plugins" / "_counting.py").touch()
    with (tmp_path / "plugins" / "exact_match.py").open("a") as metric:
        metric.write("\nfrom . import _counting\n")
    (tmp_path / "plugins" / "no_plugin.py").write_text("raise RuntimeError('this file is not run')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_they_work_from_photographs_to_scores(study: Path) -> None:
    names, things, splits = [f"{number}.png" for number in range(8)], ("dog", "cat"), ("train", "train", "val", "test")
    write_noise(study / "photographs", names)
    rows = [f"{name},A {thing}.,{split}" for name, thing, split in zip(names, 4 * things, 2 * splits, strict=True)]
    (study / "captions.csv").write_text("\n".join(["image,caption,split", *rows]))
    (study / "colours").mkdir()
    (study / "colours" / "config.json").write_text("{}")
    save_file({"nothing": np.zeros(1, np.float32)}, study / "colours" / "model.safetensors")
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=study, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("stage", "settings", "counted"),
    [
        (
            "score",
            {"metrics": {"caption": ["bleu", "exact_match"]}},
            {"plugins/exact_match.py", "plugins/_counting.py"},
        ),
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
    path = study / "plugins" / "exact_match.py"
    path.write_text("import dateutil\n" + path.read_text())
    code = job_code("vitcapr.stages.score", {"metrics": {"caption": ["exact_match"]}})
    assert code["dateutil"] == importlib.metadata.version("python-dateutil")


def test_an_entry_point_is_a_plugin(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.move(study / "plugins" / "means.py", study / "their_encoder.py")
    monkeypatch.syspath_prepend(study)
    point = importlib.metadata.EntryPoint("colour", "their_encoder", "vitcapr.plugins")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point] if group == point.group else [])
    assert set(plugins("ENCODER")) == {"colour"}
    assert plugins("ENCODER")["colour"].load().image_size == (224, 224)


def test_the_rules_take_a_metric(study: Path) -> None:
    """A dry run reads the configuration, and checks every rule against its stage."""
    assert snakemake_forks().run("-m", "vitcapr", "init", "mine", folder=study).returncode == 0
    shutil.move(study / "plugins", study / "mine" / "plugins")
    config = study / "mine" / "louder.yaml"
    config.write_text(CONFIG)
    command = ("-m", "snakemake", "-n", "--nocolor", "--configfile", config.name)
    done = snakemake_forks().run(*command, folder=config.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    config.write_text(CONFIG.replace("exact_match", "exact_macth").replace("gain", "gian"))
    done = snakemake_forks().run(*command, folder=config.parent)
    assert "exact_match" in done.stderr
    assert "did you mean 'captioners.mine.gain'" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [("METRIC = (", "is not Python"), ("METRIC = 1\nimport nothing_here", "No module named 'nothing_here'")],
)
def test_a_wrong_file_is_one_line(study: Path, text: str, message: str) -> None:
    (study / "plugins" / "wrong.py").write_text(text)
    with pytest.raises(UserError, match=message):
        plugins("METRIC")["wrong"].load()
