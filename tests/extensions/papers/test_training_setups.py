from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.models.untrained import configured
from vitcapr.config.base import Section
from vitcapr.config.dual_encoder import RetrieverConfig
from vitcapr.errors import UserError
from vitcapr.extensions.finetuning.config import FinetuneSettings
from vitcapr.extensions.papers.published import read_published
from vitcapr.extensions.papers.setups import read_training_setup, training
from vitcapr.formats.model import write_card
from vitcapr.stages.train_captioner import TrainCaptionerSettings
from vitcapr.stages.train_retriever import TrainRetrieverSettings


def card(folder: Path, settings: Section, **score: float) -> Path:
    path = folder / "card.json"
    write_card(folder, {"settings": settings.canonical(), "best_score": score, "best_epoch": 3})
    return path


def captioner_card(folder: Path, **model: Any) -> Path:
    captioner = configured(**{"kind": "patch_attention", **model})
    return card(folder, TrainCaptionerSettings(captioner=captioner), validation_loss=2.5)


def retriever_card(folder: Path, **model: Any) -> Path:
    retriever = RetrieverConfig.model_validate({"backbone": "vit", **model})
    return card(folder, TrainRetrieverSettings(retriever=retriever), validation_rsum=3.25)


def finetuned_card(folder: Path, **model: Any) -> Path:
    return card(folder, FinetuneSettings.model_validate({"finetuned": model}), validation_loss=2.5)


PHASE = {"epochs": 15, "learning_rate": 0.001}


@pytest.mark.parametrize(
    ("write", "model", "expected"),
    [
        (
            captioner_card,
            {
                "word_vectors": "glove50",
                "embedding_dim": 50,
                "training": {
                    "phases": [
                        {**PHASE, "batch_images": 3, "max_length": 33},
                        {**PHASE, "batch_images": 6, "learning_rate": 0.0001, "max_length": 35},
                    ]
                },
            },
            {
                "epochs": "15, then 15",
                "batch": "3, then 6 images",
                "learning_rate": "0.001, then 0.0001; adam",
                "schedule": "cosine",
                "objective": "cross-entropy",
                "dropout": "0.2",
                "embedding": "glove50; 50 dimensions",
                "longest_caption": "33, then 35",
                "best_loss": "2.5000 (validation loss) in epoch 3",
            },
        ),
        (
            retriever_card,
            {
                "image": {"dropout": 0.1},
                "text": {"kind": "features", "encoder": "minilm", "dropout": 0.5},
                "training": {
                    "phases": [PHASE, {**PHASE, "captions_per_image": 1, "hard_negatives": "second"}],
                    "pairs": 5000,
                },
            },
            {
                "epochs": "15, then 15",
                "batch": "64 images; captions of each: -, then 1; 5,000 pairs in all",
                "learning_rate": "0.001; adam",
                "objective": "info-nce; temperature 0.07; hard negatives: -, then second",
                "dropout": "0.1 image; 0.5 text",
                "embedding": "features of minilm",
                "longest_caption": "-",
                "best_loss": "3.2500 (validation rsum) in epoch 3",
            },
        ),
        (
            retriever_card,
            {
                "text": {"kind": "lstm", "word_dim": 50, "max_length": 33},
                "training": {"phases": [{**PHASE, "batch_pairs": 64}]},
            },
            {"batch": "64 pairs", "embedding": "50 dimensions", "longest_caption": "33"},
        ),
        (
            finetuned_card,
            {
                "image": {"backbone": "vit"},
                "text": {"both": {"languages": ["en"], "source": "bert"}},
                "training": {"phases": [{**PHASE, "batch_pairs": 20, "objective": "pooled"}], "optimizer": "sgd"},
            },
            {"batch": "20 pairs", "learning_rate": "0.001; sgd", "objective": "pooled; temperature 0.1"},
        ),
    ],
)
def test_a_card_in_words(
    tmp_path: Path, write: Callable[..., Path], model: dict[str, Any], expected: dict[str, str]
) -> None:
    setup = read_training_setup(write(tmp_path / "mine", **model))
    assert setup["system"] == "mine"
    assert {column: setup[column] for column in expected} == expected


@pytest.mark.parametrize("content", [{}, {"settings": {"backbone": {}}}, {"settings": 3}])
def test_another_card_is_refused(tmp_path: Path, content: Any) -> None:
    write_card(tmp_path, content)
    with pytest.raises(UserError, match="not the card of a captioner, a retriever or"):
        read_training_setup(tmp_path / "card.json")


def test_this_builds_setups_are_listed_after_the_papers(tmp_path: Path) -> None:
    table = training(read_published("vitcap-r"), [read_training_setup(captioner_card(tmp_path / "mine"))])
    assert [row[0].text for row in table.rows] == [*["paper"] * 5, "this build"]
    assert [cell.text for cell in table.rows[-1]][1:3] == ["mine", "4"]
    assert table.rows[1][table.columns.index("best validation score")].text == "3.2258"


def test_a_raw_retriever_has_nothing_to_tell(tmp_path: Path) -> None:
    path = tmp_path / "raw" / "card.json"
    write_card(path.parent, {"settings": {"retriever": {"training": {"phases": []}}}})
    setup = read_training_setup(path)
    assert (setup.pop("system"), set(setup.values())) == ("raw", {"-"})
