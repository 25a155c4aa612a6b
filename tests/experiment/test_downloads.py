"""An outsider finds every file and model that an experiment names."""

import re
from pathlib import Path
from typing import Any

import pytest

from vitcapr.commands.config import files_text
from vitcapr.commands.downloads import missing_lines, models_of, read_obtainable
from vitcapr.config.base import parse
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.experiment.experiment import Experiment, read_merged

REPOSITORY = Path(__file__).parents[2]
EXPERIMENTS = sorted(path.stem for path in (REPOSITORY / "experiments").glob("*.yaml"))


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    for name in ("VITCAPR_DATA", "VITCAPR_BACKBONES"):
        monkeypatch.delenv(name, raising=False)


def experiment(name: str, **values: Any) -> Experiment:
    merged = {**read_merged(Path("experiments") / f"{name}.yaml"), **values}
    return Experiment(parse(ExperimentConfig, expand_grid(merged, name), name))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_file_and_model_is_to_be_had_and_a_hub_id_has_the_commit_of_the_table(name: str) -> None:
    sources = {spelled: one.source for one in read_obtainable() for spelled in one.names}
    wanted = experiment(name)
    assert {str(path) for path in wanted.user_files.values()} | set(models_of(wanted)) <= sources.keys()
    for model, revision in models_of(wanted).items():
        if "/" in model:
            assert re.fullmatch("[0-9a-f]{40}", revision), model
            assert sources[model] == f"https://huggingface.co/{model}/tree/{revision}"


def test_the_docs_show_the_table() -> None:
    """Make it again with: vitcapr config files, between the marks of docs/files.md"""
    assert files_text() in (REPOSITORY / "docs" / "files.md").read_text(encoding="utf-8")


def test_what_is_missing_is_listed_with_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = missing_lines(experiment("vitcap-r-flickr8k"))
    assert [line.split(" (")[0] for line in lines] == [
        "missing: data.flickr8k.images: flickr8k/Flicker8k_Dataset",
        "missing: data.flickr8k.text: flickr8k/Flickr8k_text",
        "missing: word_vectors.glove50.path: glove/glove.6B.50d.txt",
        "the hub or its cache will be asked for google/vit-base-patch16-224-in21k",
    ]
    assert lines[2].endswith(": https://nlp.stanford.edu/data/glove.6B.zip")
    (tmp_path / "glove").mkdir()
    (tmp_path / "glove" / "glove.6B.50d.txt").touch()
    (tmp_path / "google" / "vit-base-patch16-224-in21k").mkdir(parents=True)
    monkeypatch.setenv("VITCAPR_DATA", str(tmp_path))
    monkeypatch.setenv("VITCAPR_BACKBONES", str(tmp_path))
    assert len(missing_lines(experiment("vitcap-r-flickr8k"))) == 2


def test_a_path_is_not_looked_for_on_the_hub(tmp_path: Path) -> None:
    values = {"experiment": "x", "backbones": {"b": {"source": "/nowhere/vit"}}, "captioners": {"a": {"backbone": "b"}}}
    assert missing_lines(Experiment(parse(ExperimentConfig, values, tmp_path))) == [
        "missing: /nowhere/vit: no such folder"
    ]
