"""Fine-tuned dual encoders and DeViSE, a retriever, in the DAG: what is made for them, and what an edit makes again."""

from pathlib import Path

from tests.experiment.conftest import Project
from tests.plans.dry_runs import commands, options_of

MATCHERS = {
    "experiment": "matched",
    "tokenizers": {"both": {"languages": ["en", "zh"], "vocab_size": 300}},
    "text_encoders": {"glove": {"source": "vectors.txt", "output": "word_vectors"}},
    "finetuned_dual_encoders": {
        "small": {
            "image": {"backbone": "vit"},
            "embedding_dim": 16,
            "text": {"both": {"languages": ["en", "zh"], "tokenizer": "both", "layers": 1, "tags": True}},
        },
        "plain": {
            "image": {"backbone": "vit"},
            "embedding_dim": 16,
            "text": {"both": {"languages": ["en", "zh"], "tokenizer": "both", "layers": 1, "segments": True}},
        },
    },
    "retrievers": {"words": {"backbone": "vit", "text": {"kind": "features", "encoder": "glove", "head": "none"}}},
    "run": {
        "captioners": [],
        "decodings": [],
        "rerankings": [],
        "retrievers": ["words"],
        "finetuned_dual_encoders": ["small"],
        "loss_curves": {"rates": ["small"]},
        "information": True,
        "paper": "bert-vit",
        "splits": ["train", "validation"],
    },
}


def test_a_matcher_asks_for_pixels_tokenizer_and_tags(fresh: Project) -> None:
    (fresh.root / "vectors.txt").write_text("dog 1 2\n", encoding="utf-8")
    plan = fresh.plan(MATCHERS)
    jobs, text = {job.name for job in plan}, commands(plan)
    splits, names = ("train", "validation"), ("small", "small-en", "small-zh", "words")
    assert {"extract_pixels vit", "train_tokenizer both", "tag_words", "finetune small"} <= jobs
    assert "figures/loss_curves/rates.png" in text
    assert {f"embed_finetuned small/{split}" for split in splits} <= jobs
    assert {f"score_languages small/{split}" for split in splits} <= jobs
    scored = {f"score_retrieval {name}/{split}" for name in names for split in splits}
    assert scored == {job for job in jobs if job.startswith("score_retrieval ")}
    # Information is not measured on the training split, and a retriever's not before training.
    measured = {f"measure_information {name}/validation" for name in ("small", "words")}
    assert measured == {job for job in jobs if job.startswith("measure_information ")}
    assert {job for job in jobs if "untrained" in job} == {"embed_untrained small/validation"}
    assert not any(job.startswith("train_captioner") for job in jobs)


def test_pairs_draw_lengths_and_models_by_language_and_score_their_pools(fresh: Project) -> None:
    config = {
        **MATCHERS,
        "experiment": "paired",
        "data": {"dataset": "pairs", "pairs": {"source": "scenes", "distractors": ["train"]}},
        "backbones": {"vit": {"source": "weights"}},
        "run": {
            **MATCHERS["run"],
            "finetuned_dual_encoders": ["small", "plain"],
            "ablations": {"small": ["plain", "words"]},
            "pools": True,
            "compared": ["small", "words"],
            "splits": ["validation"],
        },
    }
    (fresh.root / "vectors.txt").write_text("dog 1 2\n", encoding="utf-8")
    (fresh.root / "weights").mkdir()
    (fresh.root / "weights" / "config.json").write_text('{"model_type": "vit"}', encoding="utf-8")
    (fresh.root / "weights" / "model.safetensors").touch()
    plan = fresh.plan(config)
    jobs, text = {job.name for job in plan}, commands(plan)
    assert "figures/pairs/lengths.png" in text
    pooled = {
        f"score_pools {name}" for name in ("small", "small-en", "small-zh", "plain", "plain-en", "plain-zh", "words")
    }
    assert pooled == {job for job in jobs if job.startswith("score_pools ")}
    # Queries are of the test split, distractors of the training split.
    assert {f"embed_finetuned small/{split}" for split in ("validation", "test", "train")} <= jobs
    embeddings = "results/paired/embeddings"
    (pooled_words,) = (each for each in options_of(plan, "score_pools") if each["model"] == "words")
    assert pooled_words["embeddings"] == [f"{embeddings}/words/{split}/embeddings.npz" for split in ("test", "train")]
    # Segments are divided by the punctuation of the texts before cleaning.
    pairs = {Path(each["finetuned"]).name: each.get("pairs") for each in options_of(plan, "finetune")}
    assert (pairs["small"], pairs["plain"]) == (None, "results/paired/data/pairs.parquet")
    assert "results/paired/metrics/retrieval/plain-zh/validation/ranks.npz" in text
    # A retriever of one language is compared in this language.
    assert '["small-en","words"]' in text
    assert '["small","words"]' not in commands([job for job in plan if job.rule_name != "first_page"])
    figures = [job for job in plan if job.rule_name == "draw_side_by_side"]
    drawn = {job.name: each for job, each in zip(figures, options_of(plan, "draw_side_by_side"), strict=True)}
    assert drawn["draw_side_by_side en/pools"]["pools"] == "results/paired/data/pools.npz"
    expected = {"small": "small-en", "words": "words"}
    for place, splits in (("pools", ("test", "train")), ("validation", ("validation",))):
        assert (
            drawn[f"draw_side_by_side en/{place}"]["embeddings"].items()
            >= {
                name: [f"{embeddings}/{folder}/{split}/embeddings.npz" for split in splits]
                for name, folder in expected.items()
            }.items()
        )
    chinese = drawn["draw_side_by_side zh/validation"]["embeddings"]
    assert chinese["small"] == [f"{embeddings}/small-zh/validation/embeddings.npz"]
    assert "words" not in chinese
