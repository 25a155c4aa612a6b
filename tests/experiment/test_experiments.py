"""Every experiment becomes a DAG, on made-up files where the real ones lie elsewhere."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.experiment.conftest import rules_of
from vitcapr.experiment.experiment import Experiment, load_experiment

REPOSITORY = Path(__file__).parents[2]
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
    for name in ("VITCAPR_DATA", "VITCAPR_BACKBONES"):
        monkeypatch.delenv(name, raising=False)
    with monkeypatch.context() as patched:
        patched.setattr("vitcapr.experiment.experiment.problems", lambda _: ())
        experiment = load_experiment(Path("experiments") / file.name)
    assert file.parent.name == ".test" or experiment.config.experiment == file.stem
    invent(experiment)
    text = fresh.snakemake("--dry-run", "--nocolor", "--configfile", f"experiments/{file.name}")
    rules = rules_of(text)
    assert {"data", "summary"} <= rules
    assert ("paper_tables" in rules) == (experiment.config.run.paper is not None)
    assert ("finetune" in rules) == bool(experiment.needed_dual_encoders)
    assert ({"align", "draw_alignment"} <= rules) == bool(experiment.alignments)
    assert ("train_captioner" in rules) == bool(experiment.trained_captioners)
    assert ("train_retriever" in rules) == bool(experiment.needed_retrievers)
