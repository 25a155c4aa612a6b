"""Matchers and DeViSE, a retriever, in the DAG: what is made for them, and what an edit makes again."""

from typing import Any

import yaml

MATCHERS = {
    "experiment": "matched",
    "tokenizers": {"both": {"languages": ["en", "zh"], "pieces": 300}},
    "text_encoders": {"glove": {"source": "vectors.txt", "output": "word_vectors"}},
    "matchers": {
        "small": {
            "image": {"backbone": "vit"},
            "embedding_dim": 16,
            "text": {"both": {"languages": ["en", "zh"], "tokenizer": "both", "layers": 1, "tags": True}},
        }
    },
    "retrievers": {"words": {"backbone": "vit", "text": {"kind": "features", "encoder": "glove", "head": "none"}}},
    "run": {
        "captioners": [],
        "decodings": [],
        "rerankings": [],
        "retrievers": ["words"],
        "matchers": ["small"],
        "losses": {"rates": ["small"]},
        "paper": "bert-vit",
        "splits": ["train", "validation"],
    },
}


def test_a_matcher_asks_for_pixels_tokenizer_and_tags(fresh: Any) -> None:
    (fresh.root / "matched.yaml").write_text(yaml.safe_dump(MATCHERS), encoding="utf-8")
    (fresh.root / "vectors.txt").write_text("dog 1 2\n", encoding="utf-8")
    text = fresh.snakemake("--dry-run", "--nocolor", "--configfile", "matched.yaml")
    rules = [line.split()[1].rstrip(":") for line in text.splitlines() if line.startswith("rule ")]
    for name in ("extract_pixels", "train_tokenizer", "tag_words", "train_matcher"):
        assert rules.count(name) == 1, name
    assert rules.count("embed_matcher") == 2
    assert rules.count("embed_untrained_matcher") == 1  # information is not measured on the training split
    assert rules.count("select_language") == 4
    assert rules.count("score_retrieval") == 8  # the matcher, its two languages and DeViSE, on two splits
    assert "metrics/languages/small/validation/metrics.json" in text
    assert "figures/losses/rates.png" in text
    assert "train_captioner" not in rules


def test_pairs_draw_lengths_and_models_by_language_and_score_their_pools(fresh: Any) -> None:
    config = {
        **MATCHERS,
        "experiment": "paired",
        "data": {"dataset": "pairs", "pairs": {"source": "scenes"}},
        "backbones": {"vit": {"source": "weights"}},
        "run": {**MATCHERS["run"], "pools": True, "compared": ["small", "words"], "splits": ["validation"]},
    }
    (fresh.root / "paired.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (fresh.root / "vectors.txt").write_text("dog 1 2\n", encoding="utf-8")
    (fresh.root / "weights").mkdir()
    (fresh.root / "weights" / "config.json").write_text("{}", encoding="utf-8")
    text = fresh.snakemake("--dry-run", "--nocolor", "--printshellcmds", "--configfile", "paired.yaml")
    rules = [line.split()[1].rstrip(":") for line in text.splitlines() if line.startswith("rule ")]
    assert rules.count("draw_pair_lengths") == 1
    assert rules.count("score_pools") == 4  # the matcher, its two languages and DeViSE
    assert rules.count("embed_matcher") == 2  # validation, and what pools are of
    assert rules.count("draw_side_by_side") == 2
    embeddings = "results/paired/embeddings"
    english, chinese = sorted(line for line in text.splitlines() if "stage draw_side_by_side" in line)
    assert f"--embeddings small={embeddings}/small-en/validation/embeddings.npz" in english
    assert f"--embeddings words={embeddings}/words/validation/embeddings.npz" in english
    assert f"--embeddings small={embeddings}/small-zh/validation/embeddings.npz" in chinese
    assert "words=" not in chinese
