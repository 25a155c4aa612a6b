"""config.yaml is the demo. Every experiment becomes a DAG, and an outsider finds all files that it names."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.experiment.conftest import rules_of
from vitcapr.commands.config import files
from vitcapr.commands.estimate import missing_lines, read_obtainable
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.grid import expand_grid
from vitcapr.config.reading import parse, read_yaml
from vitcapr.experiment.checks import checkpoint_sources
from vitcapr.experiment.experiment import Experiment, load_experiment, read_merged

REPOSITORY = Path(__file__).parents[2]
DEFAULT = REPOSITORY / "config.yaml"


def test_config_yaml_changes_models_alone() -> None:
    """What it shows of other sections is the default, so that the demo and an empty file differ in models alone."""
    shown = parse(ExperimentConfig, read_yaml(DEFAULT), DEFAULT).canonical()
    default = ExperimentConfig(experiment="demo").canonical()
    named = ("captioners", "retrievers", "rerankings", "run")
    assert {k: v for k, v in shown.items() if k not in named} == {k: v for k, v in default.items() if k not in named}


def test_no_figures() -> None:
    values: dict[str, Any] = {"captioners": {"a": {"backbone": "vit"}}, "run": {"captioners": ["a"]}}
    values["experiment"] = "drawn"
    assert Experiment(parse(ExperimentConfig, values, "")).targets.figures
    for none in ("none", {"formats": []}):
        assert not Experiment(parse(ExperimentConfig, {**values, "figures": none}, "")).targets.figures


NAMES = sorted(path.stem for path in (REPOSITORY / "experiments").glob("*.yaml"))


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    for name in ("VITCAPR_DATA", "VITCAPR_BACKBONES"):
        monkeypatch.delenv(name, raising=False)


def experiment(name: str, **values: Any) -> Experiment:
    merged = {**read_merged(Path("experiments") / f"{name}.yaml"), **values}
    return Experiment(parse(ExperimentConfig, expand_grid(merged, name), name))


@pytest.mark.parametrize("name", NAMES)
def test_every_file_and_model_is_to_be_had_and_a_hub_id_has_the_commit_of_the_table(name: str) -> None:
    sources = {spelled: one.source for one in read_obtainable() for spelled in one.names}
    wanted = experiment(name)
    started = checkpoint_sources(wanted)
    assert {str(path) for path in wanted.user_files.values()} | started.keys() <= sources.keys()
    for model, revision in started.items():
        if "/" in model:
            assert re.fullmatch("[0-9a-f]{40}", revision), model
            assert sources[model] == f"https://huggingface.co/{model}/tree/{revision}"


def test_the_docs_show_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Make it again with: vitcapr config files, between the marks of docs/files.md"""
    files()
    assert capsys.readouterr().out in (REPOSITORY / "docs" / "files.md").read_text(encoding="utf-8")


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


EXPERIMENTS = [*sorted((REPOSITORY / "experiments").glob("*.yaml")), REPOSITORY / ".test" / "config.yaml"]


def invent(experiment: Experiment) -> None:
    """A file or a folder with one file for everything that the experiment reads, below the working folder."""
    for path in experiment.user_files.values():
        file = path if path.suffix else path / "file"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("made up\n", encoding="utf-8")


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_an_experiment_becomes_a_dag(file: Path, fresh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(REPOSITORY / "experiments", fresh.root / "experiments")
    shutil.copy(file, fresh.root / "experiments")
    monkeypatch.chdir(fresh.root)
    with monkeypatch.context() as patched:
        patched.setattr("vitcapr.experiment.experiment.problems", lambda _: ())
        experiment = load_experiment(Path("experiments") / file.name)
    assert file.parent.name == ".test" or experiment.config.experiment == file.stem
    invent(experiment)
    rules = rules_of(fresh.dry_run("--configfile", f"experiments/{file.name}"))
    assert {"data", "summary"} <= rules
    assert ("paper_tables" in rules) == (experiment.config.run.paper is not None)
    assert ("finetune" in rules) == bool(experiment.models.needed("finetuned_dual_encoders"))
    assert ("align" in rules) == bool(experiment.config.run.alignments)
    assert ("train_captioner" in rules) == bool(experiment.models.trained_captioners)
    assert ("train_retriever" in rules) == bool(experiment.models.needed_retrievers)
