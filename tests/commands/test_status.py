"""What a status says of stores that are gone."""

import shutil
from pathlib import Path

import pytest

import vitcapr
from tests.checkpoints import make_dataset
from tests.commands.conftest import write_backbones
from vitcapr.errors import UserError
from vitcapr.store.check import lost_stores
from vitcapr.store.reader import open_features


def test_a_store_that_was_deleted_is_named_with_the_rules_that_make_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_backbones(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VITCAPR_STORES", "results/stores")
    results = Path("results/a")
    make_dataset(results / "data", 5)
    store = vitcapr.extract(results / "data", "noise-vit", results / "features/vit", device="cpu")
    sealed = Path(store, "manifest.json")
    assert list(lost_stores(results)) == []
    shutil.rmtree("results/stores")
    assert list(lost_stores(results)) == [(sealed, "--forcerun extract --until seal")]
    with pytest.raises(UserError, match=r"the feature store is gone .*snakemake --forcerun extract --until seal"):
        open_features(sealed)
