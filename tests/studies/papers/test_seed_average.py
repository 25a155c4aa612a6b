import math
from dataclasses import replace

import pytest

from vitcapr.studies.papers.side_by_side import BuildRow, ScoreRange, seed_average


def row(key: str, value: float, split: str = "test", **other: float) -> BuildRow:
    scores = {"i2t_recall_1": ScoreRange(value, 0, 1)} | {name: ScoreRange(one, 0, 1) for name, one in other.items()}
    return BuildRow("e", "flickr8k", split, key, scores, dict.fromkeys(scores, "pool:9|split:test|ci:95,samples=9"))


def test_seeds_become_one_row_with_their_spread() -> None:
    builds = [row("raw", 0.01), row("mlp-seed0", 0.2, extra=1.0), row("linear", 0.1), row("mlp-seed1", 0.4)]
    builds += [row("mlp-seed0", 0.9, split="validation")]
    merged = seed_average(builds, {"mlp-seed0": "mlp", "mlp-seed1": "mlp"})
    assert [(one.key, one.split, one.variant) for one in merged] == [
        ("raw", "test", ""),
        ("mlp", "test", ", mean of 2 seeds"),
        ("linear", "test", ""),
        ("mlp", "validation", ""),
    ]
    score = merged[1].scores["i2t_recall_1"]
    assert score == pytest.approx((0.3, 0.3 - math.sqrt(0.02), 0.3 + math.sqrt(0.02)))
    assert "extra" not in merged[1].scores
    assert merged[1].protocols["i2t_recall_1"] == "pool:9|split:test|mean of 2 seeds, one standard deviation each way"
    assert seed_average(builds[:3], {}) == builds[:3]


def test_the_protocol_keeps_all_but_the_interval() -> None:
    protocol = "pool:9|ci:95,samples=9,seed=0|rerank:top5 of dual"
    builds = [replace(row(key, 0.1), protocols={"i2t_recall_1": protocol}) for key in ("a", "b")]
    (merged,) = seed_average(builds, {"a": "mlp", "b": "mlp"})
    told = "pool:9|rerank:top5 of dual|mean of 2 seeds, one standard deviation each way"
    assert merged.protocols["i2t_recall_1"] == told
