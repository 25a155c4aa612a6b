import re

import pytest

from vitcapr.errors import UserError
from vitcapr.extensions.papers.published import (
    TABLE_NAMES,
    Number,
    Published,
    read_published,
)
from vitcapr.metrics.labels import COLUMNS


@pytest.fixture(scope="module")
def paper() -> Published:
    return read_published("vitcap-r")


def numbers_of(paper: Published, table: str, system: str) -> dict[str, str]:
    return {
        metric: number.printed
        for name, row, metric, number in paper.numbers()
        if (name, row.source, row.system) == (table, "paper", system)
    }


def test_the_numbers_of_the_paper(paper: Published) -> None:
    """Typed from the paper's section IV-B, apart from the file."""
    assert numbers_of(paper, "captioning_flickr8k", "baseline (ViT and LSTM), greedy") == {
        "bleu_1": "0.5124", "bleu_2": "0.2901", "bleu_3": "0.1180", "bleu_4": "0.0376", "meteor": "0.1568",
    }  # fmt: skip
    assert numbers_of(paper, "captioning_flickr8k", "patch attention, beam 5") == {
        "bleu_mean": "0.1039",
        "meteor": "0.3103",
    }
    assert numbers_of(paper, "retrieval_flickr8k", "dual encoder") == {
        "i2t_recall_1": "0.07", "i2t_recall_5": "0.60", "i2t_recall_10": "1.02", "i2t_median_rank": "702",
        "t2i_recall_1": "0.05", "t2i_recall_5": "0.37", "t2i_recall_10": "0.80", "t2i_median_rank": "775",
    }  # fmt: skip
    assert numbers_of(paper, "captioning_coco", "patch attention, beam 5") == {
        "bleu_1": "0.0037", "bleu_2": "0.0010", "bleu_3": "0.0007", "bleu_4": "0.0006", "meteor": "0.0156",
    }  # fmt: skip
    assert numbers_of(paper, "retrieval_coco", "dual encoder, after hard negatives") == {
        "i2t_recall_1": "0.0031", "i2t_recall_5": "0.0195", "i2t_recall_10": "0.0385",
        "t2i_recall_1": "0.0035", "t2i_recall_5": "0.0146", "t2i_recall_10": "0.0274",
    }  # fmt: skip
    assert [setup["best_loss"] for setup in paper.training_setups] == ["1.4799", "3.2258", "0.6885", "0.1570", "0.1457"]


def test_the_literature_is_listed_after_the_paper(paper: Published) -> None:
    for table in paper.tables.values():
        sources = [row.source == "paper" for row in table.rows]
        assert sources == sorted(sources, reverse=True)
        assert all(row.where if row.source == "paper" else row.citation for row in table.rows)
    soft = [row for row in paper.tables["captioning_flickr8k"].rows if row.system == "soft attention"]
    assert soft[0].values["bleu_4"].value == pytest.approx(0.195)


@pytest.mark.parametrize(
    ("printed", "unit", "shown", "value"),
    [
        ("0.5124", "fraction", "51.24", 0.5124),
        ("0.1180", "fraction", "11.80", 0.118),
        ("0.0006", "fraction", "0.06", 0.0006),
        ("1.02", "percent", "1.02", 0.0102),
        ("98", "percent", "98", 0.98),
        ("702", "rank", "702", 702),
    ],
)
def test_no_printed_digit_is_lost(printed: str, unit: str, shown: str, value: float) -> None:
    number = Number.model_validate({"printed": printed, "unit": unit})
    assert (number.shown, number.value) == (shown, pytest.approx(value))


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_every_number_has_its_place_and_a_plausible_value_and_every_note_is_used(name: str) -> None:
    published = read_published(name)
    for table, row, metric, number in published.numbers():
        place = (table, row.system, metric)
        assert row.origin, place
        assert re.fullmatch(r"\d+(\.\d+)?\+?", number.printed), place
        assert number.unit in ("rank", "bits") or 0 <= number.value <= 1.3, place
        assert ("rank" in metric) == (number.unit == "rank"), place
        assert metric in COLUMNS, place
    rows = [row for table in published.tables.values() for row in table.rows]
    used = {note for row in rows for one in (row, *row.values.values()) for note in one.notes}
    assert used == published.notes.keys()
    for table in published.tables.values():
        assert all(row.values.keys() <= set(table.metrics) for row in table.rows)


def test_an_unknown_paper_is_one_line() -> None:
    with pytest.raises(UserError, match="no published numbers of 'blip-2'; known papers: vitcap-r"):
        read_published("blip-2")


def test_the_numbers_of_the_second_paper() -> None:
    """Typed from its tables 2 and 4, apart from the file."""
    found = read_published("blip2-flickr30k")
    metrics = [f"{direction}_recall_{depth}" for direction in ("i2t", "t2i") for depth in (1, 5, 10)]
    linear = dict(zip(metrics, ["20.67", "41.17", "51.10", "20.07", "40.47", "50.96"], strict=True))
    mlp = dict(zip(metrics, ["25.27", "46.62", "56.16", "26.10", "48.08", "58.26"], strict=True))
    raw = dict(zip(metrics, ["0.00", "0.01", "0.03", "0.00", "0.02", "0.04"], strict=True))
    for table in ("retrieval_flickr30k", "full_training"):
        assert numbers_of(found, table, "pretrained") == raw
    for table in ("retrieval_flickr30k", "full_training", "heads"):
        assert numbers_of(found, table, "baseline, linear head, 5k pairs") == linear
        assert numbers_of(found, table, "improved, MLP head, 5k pairs and 8 epochs") == mlp
    assert numbers_of(found, "literature_retrieval", "BLIP-2 (2023)") == {
        "i2t_recall_1": "96.7",
        "i2t_recall_10": "99.9",
    }
    assert found.tables.keys() <= set(TABLE_NAMES["blip2-flickr30k"])
