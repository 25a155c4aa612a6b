"""Where the DAG keeps its stores, and stores that it takes as they are."""

import re
from typing import Any

import pytest

from tests.experiment.conftest import rules_of


def test_the_store_root_comes_from_one_place_and_re_runs_nothing(two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITCAPR_STORES", "/group/stores")
    assert two.stale_jobs() == set()
    text = two.snakemake("--dry-run", "--nocolor", "--printshellcmds", "--forceall", "--", "features")
    assert text.count("--stores /group/stores") == 2
    assert "results/stores" not in text


def test_every_view_of_a_retriever_is_a_store_of_its_own(fresh: Any) -> None:
    values = {
        "backbones": {"mirrored": {"source": "trained", "mirror": True}},
        "captioners": {"attention": {"backbone": "vit"}},
        "retrievers": {"paper": {"backbone": "vit", "augmented_views": ["mirrored"]}},
        "rerankings": {"reranked": {"decoding": "beam", "retriever": "paper"}},
    }
    text = fresh.plan(values)
    features = "results/demo/features"
    for name in ("vit", "mirrored"):
        assert f"--part {features}/{name}/parts/0.json" in text
        assert f"--sealed {features}/{name}/manifest.json" in text
    both = rf"--features {features}/vit/manifest\.json .*--augmented-views {features}/mirrored/manifest\.json "
    asking = re.findall(rf"vitcapr stage (\w+) .*{both}", text)
    assert set(asking) == {"train_retriever", "embed", "tune_reranking", "rerank"}
    assert text.count("--augmented-views ") == len(asking)


def test_an_adopted_store_is_not_extracted(fresh: Any) -> None:
    store = fresh.root / "results" / "stores" / "0123456789abcdef"
    store.mkdir(parents=True)
    (store / "manifest.json").touch()
    values = {
        "backbones": {"vit": {"source": "store:0123456789abcdef"}},
        "captioners": {"attention": {"backbone": "vit"}},
    }
    text = fresh.plan(values)
    rules = rules_of(text)
    assert "adopt" in rules
    assert rules.isdisjoint({"extract", "seal", "train_backbone", "draw_rollout"})
    assert "draw_attention" in rules
    assert re.search(r"stage adopt .*--store results/stores/0123456789abcdef/manifest\.json ", text)
