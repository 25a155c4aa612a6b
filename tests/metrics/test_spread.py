"""Scores over seeds, against scipy's paired t test and as people read them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from vitcapr.config.experiment import SeededModel
from vitcapr.formats.scores import tidy, write_summary
from vitcapr.metrics.seed_spread import paired, spread
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.spread import spread as spread_stage

LINEAR, MLP = [0.20, 0.22, 0.21], [0.30, 0.31, 0.33]


def summary(values: dict[str, float | None], metric: str = "i2t_recall_1") -> pd.DataFrame:
    place = {"dataset": "flickr8k", "split": "test", "protocol": "p", "decoding": ""}
    scores = {name: {"value": value, "low": None, "high": None, "n": 5} for name, value in values.items()}
    return tidy([{"model": name, "metrics": {metric: score}, **place} for name, score in scores.items()], "e")


def models(*groups: tuple[str, str], seeds: int = 3) -> dict[str, SeededModel]:
    return {
        f"{of}{'-' * bool(vary)}{vary}-seed{seed}": SeededModel(of=of, vary=vary, seed=seed)
        for of, vary in groups
        for seed in range(seeds)
    }


BOTH = models(("linear", ""), ("mlp", ""))
SCORES = summary({**dict(zip(BOTH, LINEAR + MLP, strict=True)), "raw": 0.001})


def test_seed_against_seed() -> None:
    row = paired(SCORES, BOTH).iloc[0]
    assert (row["first"], row["second"], row["n"], row["wins"]) == ("linear", "mlp", 3, 3)
    assert row["difference"] == pytest.approx(np.subtract(MLP, LINEAR).mean())
    interval = ttest_1samp(np.subtract(MLP, LINEAR), 0).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
    assert row["verdict"] == "higher"


def test_only_variants_of_the_same_settings_and_seed_are_compared() -> None:
    many = models(("linear", "pairs500"), ("linear", "pairs900"), ("mlp", "pairs500"))
    del many["mlp-pairs500-seed0"]
    table = paired(summary({name: float(number) for number, name in enumerate(many)}), many)
    assert table[["first", "second", "n"]].to_numpy().tolist() == [["linear-pairs500", "mlp-pairs500", 2]]


def test_the_decodings_of_a_captioner_are_compared() -> None:
    seeds = models(("lstm", ""), seeds=2)
    greedy, beam = (summary(dict(zip(seeds, values, strict=True)), "cider") for values in ([0.4, 0.5], [0.5, 0.7]))
    table = paired(pd.concat([greedy.assign(decoding="greedy"), beam.assign(decoding="beam")]), seeds)
    assert table[["decoding", "first", "second", "wins"]].to_numpy().tolist() == [["", "lstm, greedy", "lstm, beam", 2]]
    assert table["difference"].tolist() == pytest.approx([0.15])


def test_one_seed_has_no_spread_and_a_missing_score_does_not_count() -> None:
    scores = dict(zip(BOTH, [*LINEAR[:2], None, 0.3, None, None], strict=True))
    table = spread(summary(scores), BOTH)
    assert table[["model", "n"]].to_numpy().tolist() == [["linear", 2]]
    assert paired(summary(scores), BOTH).empty


def test_as_people_read_it(tmp_path: Path) -> None:
    write_summary(tmp_path / "summary.csv", SCORES)
    files = {"spread": tmp_path / "spread.csv", "pairs": tmp_path / "pairs.csv", "table": [tmp_path / "spread.md"]}
    settings = {"models": {name: model.values() for name, model in BOTH.items()}}
    run_stage(spread_stage, summary=tmp_path / "summary.csv", settings=settings, **files)
    assert pd.read_csv(files["spread"])["model"].tolist() == ["linear", "mlp"]
    assert pd.read_csv(files["pairs"])["verdict"].tolist() == ["higher"]
    text = files["table"][0].read_text()
    assert "| score | linear | mlp |" in text
    assert "| I→T R@1 | 21.00 ± 1.00 (20.00-22.00) | 31.33 ± 1.53 (30.00-33.00) |" in text
    assert "| seeds | 3 | 3 |" in text
    assert "| linear | mlp | +10.33 |" in text
    assert "| 3 of 3 | mlp higher beyond the spread of the seeds |" in text
