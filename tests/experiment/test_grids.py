"""What a grid of seeds makes of every kind of model: each is trained and scored, and one of them is drawn."""

from typing import Any

import pytest

from vitcapr.experiment.experiment import Experiment
from vitcapr.extensions.finetuning.config import FinetuneSettings
from vitcapr.stages.spread import SpreadSettings
from vitcapr.stages.train_retriever import TrainRetrieverSettings

TOWERS = {
    "image": {"backbone": "vit"},
    "text": {"both": {"languages": ["en", "zh"], "tokenizer": "both", "layers": 1}},
    "embedding_dim": 16,
}


@pytest.fixture
def seeds() -> Experiment:
    """Two seeds of two fine-tuned dual encoders and of a retriever."""
    config: dict[str, Any] = {
        "experiment": "demo",
        "tokenizers": {"both": {"languages": ["en", "zh"], "vocab_size": 300}},
        "finetuned_dual_encoders": {"small": TOWERS, "cool": {**TOWERS, "temperature": 0.5}},
        "retrievers": {"found": {"backbone": "vit"}, "words": {"backbone": "vit"}},
        "run": {
            "captioners": [],
            "decodings": [],
            "retrievers": ["found", "words"],
            "finetuned_dual_encoders": ["small", "cool"],
            "compared": ["small", "words", "found"],
            "query_banks": ["small", "found"],
        },
        "grid": [
            {
                "finetuned_dual_encoders": ["small", "cool"],
                "retrievers": ["words"],
                "vary": {"seed": [4, 5]},
            }
        ],
    }
    return Experiment.from_config(config)


def spread(experiment: Experiment) -> dict[str, Any]:
    models: dict[str, Any] = SpreadSettings.from_config(experiment.config, None).canonical()["models"]
    return models


def test_every_kind_of_model_is_in_the_table_of_seeds_and_compared_in_its_language(seeds: Experiment) -> None:
    models = spread(seeds)
    assert seeds.targets.spreads == ["results/demo/tables/spread.md"]
    assert models["words-seed4"] == {"of": "words", "vary": "", "seed": 4}
    assert models["small-seed5"] == {"of": "small", "vary": "", "seed": 5}
    assert "found" not in models
    assert models["cool-seed4-zh"] == {"of": "cool", "vary": "zh", "seed": 4}
    assert seeds.models.systems["small-seed4-zh"] == "small-zh"
    assert "found" not in seeds.models.systems


def test_scores_with_a_query_bank_are_listed_beside_those_without(seeds: Experiment) -> None:
    each = [f"small-seed{seed}{language}" for seed in (4, 5) for language in ("", "-en", "-zh")]
    assert seeds.models.querybank_scores == {f"{name}-query_bank": name for name in [*each, "found"]}
    models = spread(seeds)
    assert models["small-seed4-zh-query_bank"] == {"of": "small", "vary": "zh-query_bank", "seed": 4}
    assert seeds.models.systems["small-seed4-query_bank"] == "small-query_bank"
    assert "found-query_bank" not in models
    assert {"train", "validation"} <= set(seeds.models.needed_splits)
    asked = type("Wildcards", (), {"scored": "found-query_bank", "split": "test"})
    assert seeds.retrieval.scored_embeddings(asked) == "results/demo/embeddings/found/test/embeddings.npz"
    assert seeds.retrieval.query_bank(asked) == ["results/demo/embeddings/found/train/embeddings.npz"]
    assert seeds.retrieval.bank_weight(asked) == ["results/demo/query_banks/found/weight.json"]
    asked.scored = "found"
    assert seeds.retrieval.query_bank(asked) == []
    assert seeds.retrieval.bank_weight(asked) == []
    assert "results/demo/metrics/retrieval/found-query_bank/test/metrics.json" in seeds.targets.metrics


def test_the_first_seed_is_drawn(seeds: Experiment) -> None:
    drawn = seeds.models.representatives(seeds.models.ranked, "finetuned_dual_encoders", "retrievers")
    each = [f"{name}-seed4{language}" for name in ("small", "cool") for language in ("", "-en", "-zh")]
    assert drawn == ["found", "words-seed4", *each]
    assert seeds.retrieval.compared == {
        "en": {"small-seed4": "small-seed4-en", "words-seed4": "words-seed4", "found": "found"},
        "zh": {"small-seed4": "small-seed4-zh"},
    }


def test_each_is_trained_with_its_own_seed(seeds: Experiment) -> None:
    finetuned, retriever = (
        type("Wildcards", (), each) for each in ({"finetuned": "small-seed5"}, {"retriever": "words-seed5"})
    )
    assert FinetuneSettings.from_config(seeds.config, finetuned).seed == 5
    assert TrainRetrieverSettings.from_config(seeds.config, retriever).seed == 5


def test_tags_are_made_where_they_are_wanted() -> None:
    run = {"retrievers": ["found"], "captioners": [], "decodings": []}
    config = {"experiment": "demo", "retrievers": {"found": {"backbone": "vit"}}}
    tags = "results/demo/text/tags/tags.npz"
    assert tags not in Experiment.from_config({**config, "run": run}).targets.tables
    assert tags in Experiment.from_config({**config, "run": {**run, "tags": True}}).targets.tables
