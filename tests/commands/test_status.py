"""What a status says of stores that are gone and of systems that leave the tables."""

import shutil
from pathlib import Path

import pytest

import vitcapr
from tests.checkpoints import make_dataset
from tests.commands.conftest import write_backbones
from vitcapr.commands.status import systems_left
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.reading import parse
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import Experiment
from vitcapr.formats.scores import Score, tidy, write_summary
from vitcapr.store.check import lost_stores
from vitcapr.store.reader import open_features


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    write_backbones(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VITCAPR_STORES", "results/stores")
    values = {
        "experiment": "a",
        "backbones": {"vit": {"source": "noise-vit", "dtype": "float32"}},
    }
    return Experiment(parse(ExperimentConfig, values, "test"))


@pytest.mark.usefixtures("experiment")
def test_a_store_that_was_deleted_is_named_with_the_rules_that_make_it_again() -> None:
    results = Path("results/a")
    make_dataset(results / "data", 5)
    store = vitcapr.extract(results / "data", "noise-vit", results / "features/vit", device="cpu")
    sealed = Path(store, "manifest.json")
    assert list(lost_stores(results)) == []
    shutil.rmtree("results/stores")
    assert list(lost_stores(results)) == [(sealed, "--forcerun extract --until seal")]
    with pytest.raises(UserError, match=r"the feature store is gone .*snakemake --forcerun extract --until seal"):
        open_features(sealed)


def test_what_leaves_the_tables_is_said(experiment: Experiment) -> None:
    models = {"captioners": {"a": {"backbone": "vit"}}, "retrievers": {"r": {"backbone": "vit"}}}
    values = {**experiment.config.canonical(), **models, "run": {"decodings": ["beam"]}}
    changed = Experiment(parse(ExperimentConfig, values, "test"))
    assert systems_left(changed) == []
    names = [("a", "greedy"), ("a", "beam"), ("r", ""), ("old", "")]
    scores = [{"dataset": "d", "split": "test", "model": m, "decoding": d, "protocol": "p"} for m, d in names]
    score: Score = {"value": 0.5, "low": None, "high": None, "n": 3}
    write_summary(Path(changed.root, "summary.csv"), tidy([{**each, "metrics": {"x": score}} for each in scores], "a"))
    assert systems_left(changed) == ["a greedy", "old"]
