"""How many images a status says are left to extract."""

import shutil
import sys
from pathlib import Path

import pytest

import vitcapr
from tests.checkpoints import make_dataset
from tests.commands.conftest import write_backbones
from vitcapr.commands.status import extractions, systems_left
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.reading import parse
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import Experiment
from vitcapr.formats.scores import Score, tidy, write_summary
from vitcapr.pipeline.dry_run import PlannedJob
from vitcapr.store.check import lost_stores
from vitcapr.store.reader import open_features

JOBS = [PlannedJob("extract", "extract vit/0", ()), PlannedJob("seal", "seal vit", ())]


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    write_backbones(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VITCAPR_STORES", "results/stores")
    values = {
        "experiment": "a",
        "backbones": {"vit": {"source": "noise-vit", "dtype": "float32"}},
        "features": {"device": "cpu"},
    }
    return Experiment(parse(ExperimentConfig, values, "test"))


def test_pictures_that_a_store_holds_are_not_counted(experiment: Experiment) -> None:
    data = Path("results/a/data")
    make_dataset(data, 5)
    assert extractions(experiment, JOBS) == ["vit: 5 of 5 images to extract"]
    vitcapr.extract(data, "noise-vit", "results/a/features/vit", dtype="float32", device="cpu")
    make_dataset(data, 7)
    assert extractions(experiment, JOBS) == ["vit: 2 of 7 images to extract"]


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


def test_nothing_is_counted_before_the_data_stage(experiment: Experiment) -> None:
    assert extractions(experiment, [PlannedJob("data", "data", ()), *JOBS]) == []


def test_without_an_extraction_torch_is_not_loaded(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vitcapr.encoders.precision", None)
    assert extractions(experiment, JOBS[1:]) == []
    with pytest.raises(ImportError):
        extractions(experiment, JOBS)
