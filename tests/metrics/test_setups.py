from pathlib import Path
from typing import Any

import pytest

from vitcapr.config.captioner import CaptionerConfig, TrainCaptionerSettings
from vitcapr.errors import UserError
from vitcapr.files import write_json
from vitcapr.metrics.published import read_published
from vitcapr.metrics.setups import other_numbers, read_setup, training


def captioner_card(folder: Path, **model: Any) -> Path:
    captioner = CaptionerConfig.model_validate({"backbone": "vit", **model})
    path = folder / "card.json"
    settings = TrainCaptionerSettings(captioner=captioner).canonical()
    write_json(path, {"settings": settings, "best_score": {"validation_loss": 2.5}, "best_epoch": 3})
    return path


def test_a_captioners_card_in_words(tmp_path: Path) -> None:
    phases = [
        {"epochs": 15, "batch_images": 3, "learning_rate": 0.001, "max_length": 33},
        {"epochs": 15, "batch_images": 6, "learning_rate": 0.0001, "max_length": 35},
    ]
    card = captioner_card(tmp_path / "baseline", word_vectors="glove50", embedding_dim=50, training={"phases": phases})
    assert read_setup(card) == {
        "system": "baseline",
        "epochs": "15, then 15",
        "batch": "3, then 6 images",
        "learning_rate": "0.001, then 0.0001",
        "schedule": "constant",
        "objective": "cross-entropy",
        "dropout": "0.3",
        "embedding": "glove50, 50",
        "longest_caption": "33, then 35",
        "best_loss": "2.5000 (validation loss) in epoch 3",
    }


def test_a_retrievers_card_in_words(tmp_path: Path) -> None:
    phase = {"epochs": 25, "batch_images": 64, "learning_rate": 1e-4, "schedule": "step", "objective": "info_nce"}
    retriever = {
        "image": {"dropout": 0.1},
        "text": {"kind": "features", "encoder": "minilm", "dropout": 0.5},
        "training": {"phases": [phase]},
    }
    content = {"settings": {"retriever": retriever}, "best_score": {"validation_rsum": 3.25}, "best_epoch": 20}
    write_json(tmp_path / "recommended" / "card.json", content)
    setup = read_setup(tmp_path / "recommended" / "card.json")
    assert [setup[key] for key in ("system", "epochs", "schedule", "dropout", "embedding", "longest_caption")] == [
        "recommended", "25", "step", "0.1 image, 0.5 text", "features of minilm", "-",
    ]  # fmt: skip
    retriever["text"] = {"kind": "lstm", "word_vectors": None, "word_dim": 256, "max_length": 33, "dropout": 0.0}
    write_json(tmp_path / "recommended" / "card.json", content)
    setup = read_setup(tmp_path / "recommended" / "card.json")
    assert (setup["embedding"], setup["longest_caption"]) == ("trainable, 256", "33")


@pytest.mark.parametrize("content", [[], {}, {"settings": {"backbone": {}}}])
def test_another_card_is_refused(tmp_path: Path, content: Any) -> None:
    write_json(tmp_path / "card.json", content)
    with pytest.raises(UserError, match="not the card of a captioner or a retriever"):
        read_setup(tmp_path / "card.json")


def test_this_builds_set_ups_stand_after_the_papers(tmp_path: Path) -> None:
    table = training(read_published("vitcap-r"), [read_setup(captioner_card(tmp_path / "mine"))])
    assert [row[0].text for row in table.rows] == [*["paper"] * 5, "this build"]
    assert [cell.text for cell in table.rows[-1]][1:3] == ["mine", "10"]
    assert table.rows[1][table.columns.index("best validation score")].text == "3.2258"


def test_the_other_numbers_have_a_place() -> None:
    rows = [[cell.text for cell in row] for row in other_numbers(read_published("vitcap-r")).rows]
    assert ["Perplexity of the t-SNE plot", "30", "section IV-D", "30"] in rows
    assert all(all(row) for row in rows)
