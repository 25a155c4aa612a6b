"""Where the DAG keeps its stores, and stores that it takes as they are."""

from typing import Any

import pytest
import yaml


def test_the_store_root_comes_from_one_place_and_re_runs_nothing(two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITCAPR_STORES", "/group/stores")
    assert two.stale_jobs() == set()
    text = two.snakemake("--dry-run", "--nocolor", "--printshellcmds", "--forceall", "--", "features")
    assert text.count("--stores /group/stores") == 2
    assert "results/stores" not in text


def test_an_adopted_store_is_not_extracted(fresh: Any) -> None:
    store = fresh.root / "results" / "stores" / "0123456789abcdef"
    store.mkdir(parents=True)
    (store / "manifest.json").touch()
    values = {"backbones": {"vit": {"source": "store:0123456789abcdef"}}, "run": {"retrievers": [], "rerankings": []}}
    (fresh.root / "adopted.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    text = fresh.snakemake("--dry-run", "--nocolor", "--printshellcmds", "--configfile", "adopted.yaml")
    rules = {line.split()[1].rstrip(":") for line in text.splitlines() if line.startswith("rule ")}
    assert "adopt" in rules
    assert rules.isdisjoint({"extract", "seal", "train_backbone", "draw_rollout"})
    assert "draw_attention" in rules
    assert "adopt results/stores/0123456789abcdef/manifest.json" in text
