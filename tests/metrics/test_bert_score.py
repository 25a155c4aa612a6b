"""BERTScore, by hand, and against a plain computation from transformers' own model."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertModel

from tests.checkpoints import save_bert
from tests.data_sets import write_data_set, write_texts
from tests.encoders.two_towers import WORDS
from vitcapr.encoders.checkpoints import weights_digest
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.scores import read_metrics
from vitcapr.metrics.similarity import Tokens, greedy_match
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.score_similarity import score_similarity

CAPTIONS = ["a dog runs", "the red cat", "cat sits on the grass", "a dog"]
REFERENCES = [["a dog", "the dog runs on grass"], ["red cat sits"], ["the cat sits", "a red dog", "grass"], ["a dog"]]


def at(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * 7


def test_greedy_matches_of_known_angles() -> None:
    """Caption tokens at 0 and 90 degrees, reference tokens at 60 and 180: cosines [[.5, -1], [.866, 0]]."""
    caption, reference = Tokens(at(0, 90), np.ones(2)), Tokens(at(60, 180), np.ones(2))
    p, r = (0.5 + math.sqrt(3) / 2) / 2, (math.sqrt(3) / 2 + 0) / 2
    assert greedy_match(caption, reference) == pytest.approx((p, r, 2 * p * r / (p + r)))
    weighed = greedy_match(Tokens(caption.vectors, np.array([3.0, 1])), Tokens(reference.vectors, np.array([0.0, 2])))
    assert weighed[:2] == pytest.approx(((3 * 0.5 + math.sqrt(3) / 2) / 4, 0.0))
    assert greedy_match(caption, Tokens(at(60), np.zeros(1))) == (0, 0, 0)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    texts = [(str(image), "en", text) for image, texts in enumerate(REFERENCES) for text in texts]
    return write_data_set(tmp_path / "data", {str(image): "train" for image in range(len(CAPTIONS))}, texts)


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return save_bert(tmp_path / "bert", WORDS, 16, num_hidden_layers=3, initializer_range=2.0)


def scored(manifest: Path, bert: Path, options: dict[str, Any], **encoder: Any) -> dict[str, Any]:
    captions, output = manifest.parent / "captions.json", manifest.parent / "similarity.json"
    write_texts(captions, dict(zip(read_manifest(manifest).images["image_id"], CAPTIONS, strict=True)))
    settings = {
        "metrics": {"bert_score": {"text_encoder": "bert", **options}, "bootstrap_samples": 20},
        "bert": {"source": str(bert), "dtype": "float32", "max_length": 32, "batch": 3, **encoder},
        "device": "cpu",
    }
    run_stage(
        score_similarity,
        captions=captions,
        manifest=manifest,
        split="train",
        metrics=output,
        settings=json.dumps(settings),
    )
    return read_metrics(output)


def plainly(bert: Path, layer: int, idf: bool) -> np.ndarray:
    """(N, 3) from sentences encoded one by one, with loops over tokens."""
    tokenizer, model = AutoTokenizer.from_pretrained(bert), BertModel.from_pretrained(bert).eval()
    flat = [set(tokenizer(text)["input_ids"]) for texts in REFERENCES for text in texts]

    def weight(token: int) -> float:
        if token in (tokenizer.cls_token_id, tokenizer.sep_token_id):
            return 0.0
        return math.log((len(flat) + 1) / (sum(token in ids for ids in flat) + 1)) if idf else 1.0

    @torch.inference_mode()
    def read(text: str) -> tuple[list[float], list[torch.Tensor]]:
        given = tokenizer(text, return_tensors="pt")
        return [weight(token) for token in given["input_ids"][0].tolist()], list(
            model(**given, output_hidden_states=True).hidden_states[layer][0]
        )

    def side(weights: list[float], own: list[torch.Tensor], other: list[torch.Tensor]) -> float:
        best = [max(float(torch.cosine_similarity(a, b, dim=0)) for b in other) for a in own]
        return sum(w * b for w, b in zip(weights, best, strict=True)) / sum(weights)

    rows = []
    for caption, texts in zip(CAPTIONS, REFERENCES, strict=True):
        each = []
        for text in texts:
            (w, a), (v, b) = read(caption), read(text)
            p, r = side(w, a, b), side(v, b, a)
            each.append((p, r, 2 * p * r / (p + r)))
        rows.append(np.max(each, axis=0))
    return np.array(rows)


@pytest.mark.parametrize(("layer", "idf"), [(None, False), (2, False), (1, True)])
def test_the_stage_scores_as_a_plain_computation(manifest: Path, bert: Path, layer: int | None, idf: bool) -> None:
    found = scored(manifest, bert, {"layer": layer, "idf": idf})
    names = ["bert_score_precision", "bert_score_recall", "bert_score_f1"]
    assert sorted(found["metrics"]) == sorted(names)
    expected = plainly(bert, layer or 3, idf).mean(axis=0)
    assert expected.max() < 0.99
    assert [found["metrics"][name]["value"] for name in names] == pytest.approx(expected.tolist(), abs=1e-5)
    assert all(found["metrics"][name]["low"] < found["metrics"][name]["high"] for name in names)
    stated = f"layer={layer or 'last'},idf={'references' if idf else 'none'},maximum over references"
    assert f"bert_score:bert@{weights_digest(bert)[:12]},{stated},baseline rescaling=none" in found["protocol"]


def test_layers_and_outputs_that_are_not_there(manifest: Path, bert: Path) -> None:
    with pytest.raises(UserError, match=r"has 3 layers, not 9; .*from 1 to 3"):
        scored(manifest, bert, {"layer": 9})
    with pytest.raises(UserError, match="BERTScore compares tokens"):
        scored(manifest, bert, {}, output="aligned")
