import math
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vitcapr.extensions.papers.beside_papers import gains, hard_negatives, read_ranks
from vitcapr.extensions.papers.published import Published, read_published
from vitcapr.extensions.papers.side_by_side import BuildRow, ScoreRange, build_rows, seed_average, side_by_side
from vitcapr.formats.scores import COLUMNS, RankFile, Ranks
from vitcapr.formats.tables import Table

BLEU = {"bleu_1": 0.6, "bleu_2": 0.4, "bleu_3": 0.3, "bleu_4": 0.2}


def system(model: str, scores: dict[str, float], **place: str) -> list[dict[str, Any]]:
    """Its rows of a summary."""
    names = {"experiment": "e", "dataset": "flickr8k", "split": "test", "decoding": "", "protocol": "tok:ptb"} | place
    return [
        {**names, "model": model, "metric": metric, "value": value, "low": value - 0.01, "high": value + 0.01, "n": 7}
        for metric, value in scores.items()
    ]


def built(*systems: list[dict[str, Any]]) -> list[BuildRow]:
    return build_rows(pd.DataFrame(chain(*systems), columns=list(COLUMNS)).astype({"value": float}))


@pytest.fixture(scope="module")
def paper() -> Published:
    return read_published("vitcap-r")


def lines(table: Table, *columns: str) -> list[list[str]]:
    at = [table.columns.index(name) for name in columns]
    return [[row[i].shown for i in at] for row in table.rows]


def test_this_build_is_listed_under_the_papers_row(paper: Published) -> None:
    builds = built(
        system("mine", {"bleu_4": 0.3}, decoding="beam"),
        system("baseline", {**BLEU, "meteor": 0.205}, decoding="greedy"),
    )
    table = side_by_side("captioning_flickr8k", paper, builds)
    shown = lines(table, "source", "system", "BLEU-4", "mean BLEU", "METEOR")
    assert shown[:4] == [
        ["paper", "baseline (ViT and LSTM), greedy", "3.76", "-", "15.68"],
        ["this build", "baseline/greedy", "20.0 (19.0-21.0)", "37.5", "20.5 (19.5-21.5)"],
        ["paper", "patch attention, greedy", "-", "2.00", "15.68"],
        ["this build", "patch_attention/greedy", "-", "-", "-"],
    ]
    assert ["this build", "mine/beam", "30.0 (29.0-31.0)", "-", "-"] in shown
    assert [row[0] for row in shown] == [*["paper", "this build"] * 4, "this build", *["literature"] * 3]
    assert "This build: tokens of the Penn Treebank." in table.caption
    assert table.notes[table.rows[1][-1].notes[0] - 1] == "Protocol: tok:ptb"


def test_notes_are_numbered_where_they_stand(paper: Published) -> None:
    table = side_by_side("captioning_flickr8k", paper, [])
    baseline = table.rows[0]
    assert baseline[1].notes == (1,)
    assert "100 validation images" in table.notes[0]
    meteor = baseline[table.columns.index("METEOR")]
    assert "METEOR" in table.notes[meteor.notes[0] - 1]
    used = {number for row in table.rows for cell in row for number in cell.notes}
    assert used == set(range(1, len(table.notes) + 1))


def test_a_table_of_another_data_set_says_that_there_is_no_run(paper: Published) -> None:
    builds = built(system("patch_attention", BLEU, decoding="beam", dataset="scenes"))
    table = side_by_side("captioning_flickr8k", paper, builds)
    assert "This build has no run on flickr8k here." in table.caption
    assert all(row[2].text == "-" for row in table.rows if row[0].text == "this build")


def test_retrieval_shows_percent_ranks_and_chance_once(paper: Published) -> None:
    scores = {"i2t_recall_1": 0.42, "i2t_median_rank": 3.0, "rsum": 3.1, "i2t_recall_1_chance": 0.001}
    folds = {"i2t_recall_1": 0.5, "i2t_recall_1_1k": 0.625}
    builds = built(system("paper", scores), system("other", scores | folds))
    shown = lines(
        side_by_side("retrieval_flickr8k", paper, builds), "source", "system", "I→T R@1", "I→T median rank", "rsum"
    )
    assert shown == [
        ["paper", "dual encoder", "0.07", "702", "-"],
        ["this build", "retriever paper", "42.0 (41.0-43.0)", "3.0 (3.0-3.0)", "310.0 (309.0-311.0)"],
        ["this build", "retriever other", "50.0 (49.0-51.0)", "3.0 (3.0-3.0)", "310.0 (309.0-311.0)"],
        ["this build", "retriever other, mean of five folds of 1,000 images", "62.5 (61.5-63.5)", "-", "-"],
        ["this build", "chance, in the same pool", "0.1 (-0.9 to 1.1)", "-", "-"],
    ]


def test_another_data_set_replaces_the_second_papers_and_is_named() -> None:
    scores = {"i2t_recall_1": 0.3, "t2i_recall_1": 0.2}
    builds = built(system("mlp", scores), system("mine", scores | {"i2t_recall_1_chance": 0.005}))
    paper = read_published("blip2-flickr30k")
    table = side_by_side("retrieval_flickr30k", paper, builds)
    shown = lines(table, "source", "system", "I→T R@1")
    assert shown[3:9] == [
        ["this build", "retriever linear", "-"],
        ["paper", "improved, MLP head, 5k pairs and 8 epochs", "25.27"],
        ["this build", "retriever mlp (flickr8k)", "30.0 (29.0-31.0)"],
        ["this build", "retriever mine (flickr8k)", "30.0 (29.0-31.0)"],
        ["this build", "chance, in the same pool (flickr8k)", "0.5 (-0.5 to 1.5)"],
        ["literature", "VSE++, ResNet-152 fine-tuned, 1,000 images", "52.9"],
    ]
    assert "The paper's rows are of flickr30k; this build's are of flickr8k" in table.caption
    heads = [name for (name,) in lines(side_by_side("heads", paper, builds), "system")]
    assert "retriever mlp (flickr8k)" in heads
    assert "retriever mine (flickr8k)" not in heads


def row(key: str, value: float, split: str = "test", **other: float) -> BuildRow:
    scores = {"i2t_recall_1": ScoreRange(value, 0, 1)} | {name: ScoreRange(one, 0, 1) for name, one in other.items()}
    return BuildRow("flickr8k", split, key, scores, dict.fromkeys(scores, "pool:9|split:test|ci:95,samples=9"))


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


def test_a_row_of_the_paper_is_compared_with_the_same_split() -> None:
    scores = (("train", 0.5), ("validation", 0.25))
    builds = built(*(system("fine_tuned", {"t2i_recall_1": value}, split=split) for split, value in scores))
    table = side_by_side("retrieval_pairs", read_published("bert-vit"), builds)
    shown = [(row[0].text, row[2].shown) for row in table.rows]
    assert shown[:4] == [
        ("paper", "86.70"),
        ("this build", "50.0 (49.0-51.0)"),
        ("paper", "79.60"),
        ("this build", "25.0 (24.0-26.0)"),
    ]


def test_bits_are_shown_as_they_are_before_and_after() -> None:
    builds = built(system("fine_tuned", {"image_entropy": 4.5, "image_entropy_before": 4.25}, split="validation"))
    table = side_by_side("representation", read_published("bert-vit"), builds)
    shown = {row[1].text: row[3].text for row in table.rows if row[0].text == "this build"}
    assert [value for name, value in shown.items() if "before training" in name] == ["4.25"]
    assert "4.50" in shown.values()
    assert table.caption.startswith("Scores times 100, bits as they are;")


def test_the_gains_of_peng_are_computed_from_the_validation_split() -> None:
    recalls = {"i2t_recall_1": 0.30, "t2i_recall_1": 0.20, "i2t_recall_5": 0.5, "t2i_recall_5": 0.5}
    information = {"caption_match_information": 0.6, "caption_match_information_before": 0.5}
    devise = {"i2t_recall_1": 0.15, "t2i_recall_1": 0.25, "i2t_recall_5": 0.4, "caption_match_information": 0.4}
    builds = built(
        system("fine_tuned", recalls | information, split="validation"),
        system("devise", devise, split="validation"),
        system("devise", {"t2i_recall_5": 0.4}, split="train"),
    )
    assert lines(gains(read_published("bert-vit"), builds), "gain", "paper", "this build") == [
        ["T→I R@1 over DeViSE", "12.9 %", "-5.0 points"],
        ["T→I R@5 over DeViSE", "10.0 %", "-"],
        ["T→I R@10 over DeViSE", "9.0 %", "-"],
        ["I(text; match) over DeViSE", "28.3 %", "+50.0 %"],
        ["I(text; match) over before training", "-", "+20.0 %"],
        ["I(image; match) over DeViSE", "31.5 %", "-"],
        ["I(image; match) over before training", "-", "-"],
    ]
    zeros = built(system("fine_tuned", dict.fromkeys([*recalls, *information], 0.0), split="validation"))
    assert {one[-1] for one in lines(gains(read_published("bert-vit"), zeros), "gain", "paper", "this build")} == {"-"}


CHANGED = ("system", "I→T R@1", "I→T median rank")


def write_ranks(folder: Path, i2t: list[int]) -> Path:
    """Four images with one caption each."""
    ranks, rows = np.array(i2t, np.int32), np.arange(4, dtype=np.int32)
    path = folder / "test" / "ranks.npz"
    RankFile(Ranks(ranks, ranks, (1 / ranks).astype(np.float32)), rows, rows, rows).write(path)
    return path


def test_retrievers_are_set_against_their_like() -> None:
    found = built(
        system("paper", {"i2t_recall_1": 0.10, "i2t_median_rank": 20.0}),
        system("alone", {"i2t_recall_1": 0.30}),
        system("paper_hard_negatives", {"i2t_recall_1": 0.08, "i2t_median_rank": 18.5}),
        system("lost_hard_negatives", {"i2t_recall_1": 0.08}),
    )
    assert lines(hard_negatives(read_published("vitcap-r"), found, {}), *CHANGED) == [
        ["dual encoder, before hard negatives", "0.44", "-"],
        ["dual encoder, after hard negatives", "0.31", "-"],
        ["change with hard negatives", "-0.13", "-"],
        ["retriever paper (flickr8k)", "10.0 (9.0-11.0)", "20.0 (20.0-20.0)"],
        ["retriever alone (flickr8k)", "30.0 (29.0-31.0)", "-"],
        ["retriever paper_hard_negatives (flickr8k)", "8.0 (7.0-9.0)", "18.5 (18.5-18.5)"],
        ["change with hard negatives", "-2.00", "-1.50"],
        ["retriever lost_hard_negatives (flickr8k)", "8.0 (7.0-9.0)", "-"],
    ]


def test_ranks_give_the_change_its_paired_interval(tmp_path: Path) -> None:
    """All four images are hits after, none before: every resample says +100."""
    paths = [
        write_ranks(tmp_path / "paper", [2, 3, 4, 2]),
        write_ranks(tmp_path / "paper_hard_negatives", [1, 1, 1, 1]),
    ]
    found = built(system("paper", {"i2t_recall_1": 0.0}), system("paper_hard_negatives", {"i2t_recall_1": 1.0}))
    table = hard_negatives(read_published("vitcap-r"), found, read_ranks(paths))
    assert lines(table, *CHANGED)[-1][1] == "+100.00 (+100.00 to +100.00)"
