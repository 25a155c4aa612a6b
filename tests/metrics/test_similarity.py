"""CLIPScore, RefCLIPScore, the similarity of sentences and BERTScore, against other implementations and by hand."""

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics.pairwise import cosine_similarity
from transformers import AutoTokenizer, BertModel, CLIPModel, CLIPProcessor

from tests.checkpoints import Experiment, make_dataset, save_bert
from tests.data_sets import write_data_set, write_texts
from tests.encoders.two_towers import ROOM, WORDS, clip
from vitcapr.encoders.checkpoints import weights_digest
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.scores import read_metrics
from vitcapr.metrics.similarity import PROMPT, Tokens, clip_scores, greedy_match, sentence_similarity
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.score_similarity import score_similarity

CAPTIONS = ["a dog runs", "the red cat", "cat sits on the grass", "a dog"]


def rotated(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * 3


def test_scores_of_known_angles() -> None:
    images, captions = rotated(0, 0, 0), rotated(60, 120, 60)
    references, image_of = rotated(60, 0, 120, 240, 150), np.array([0, 0, 1, 2, 2])
    found = clip_scores(images, captions, references, image_of)
    # An opposed image gives 0. So does a reference that is at right angles or more.
    assert found["clip_score"].value == pytest.approx((2.5 * 0.5 + 0 + 2.5 * 0.5) / 3)
    assert found["ref_clip_score"].value == pytest.approx((2 * 1.25 * 1 / 2.25 + 0 + 0) / 3)
    similar = sentence_similarity(captions, references, image_of)["sentence_similarity"]
    assert similar.value == pytest.approx(((1 + 0.5) / 2 + 1 + (-1 + 0) / 2) / 3)


def score(captions: Path, manifest: Path, settings: dict[str, Any], **files: Path) -> dict[str, Any]:
    chosen, output = settings, manifest.with_name("similarity.json")
    given = {"captions": captions, "manifest": manifest, "metrics": output, **files}
    run_stage(score_similarity, split="train", settings=chosen, device="cpu", **given)
    return read_metrics(output)


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return Experiment(tmp_path, make_dataset(tmp_path / "data", len(CAPTIONS)), clip(tmp_path / "clip"))


@pytest.fixture
def captions(experiment: Experiment) -> Path:
    images = read_manifest(experiment.manifest).images["image_id"]
    return write_texts(experiment.root / "captions.json", dict(zip(images, CAPTIONS, strict=True)))


def scored(experiment: Experiment, captions: Path, text: Path) -> dict[str, Any]:
    encoder = {"source": str(text), "output": "aligned", "dtype": "float32", "max_length": ROOM}
    metrics = {"clip_score": {"backbone": "clip", "text_encoder": "clip"}, "bootstrap_samples": 20}
    store = experiment.run(source="clip", output="aligned", store_dtype="float32")
    settings = {"metrics": metrics, "clip": encoder}
    return score(captions, experiment.manifest, settings, features=store.manifest_path)


def test_clip_score_is_the_cosine_of_the_whole_model(experiment: Experiment, captions: Path) -> None:
    """Of images and texts together, by transformers' own processor and CLIPModel."""
    found = scored(experiment, captions, experiment.backbone)
    model = CLIPModel.from_pretrained(experiment.backbone)
    processor = CLIPProcessor.from_pretrained(experiment.backbone)
    paths = read_manifest(experiment.manifest).images["path"]
    pictures = [Image.open(experiment.root / "data" / "pictures" / path).convert("RGB") for path in paths]
    texts = [PROMPT + caption for caption in CAPTIONS]
    how = {"return_tensors": "pt", "padding": True, "truncation": True, "max_length": ROOM}
    with torch.inference_mode():
        output = model.eval()(**processor(text=texts, images=pictures, **how))
        cosines = (output.logits_per_image / model.logit_scale.exp()).diagonal()
    assert found["metrics"]["clip_score"]["value"] == pytest.approx(2.5 * cosines.clamp(min=0).mean().item(), abs=2e-4)
    assert 0 < found["metrics"]["ref_clip_score"]["value"] < 2.5
    assert "w=2.5,prompt=A photo depicts" in found["protocol"]


def test_another_model_is_refused(experiment: Experiment, captions: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(experiment.backbone, other)
    torch.manual_seed(1)
    CLIPModel(CLIPModel.from_pretrained(other).config).save_pretrained(other)
    with pytest.raises(UserError, match="the features are of clip, and other@"):
        scored(experiment, captions, other)


def test_sentences_are_compared_by_a_text_encoder_alone(experiment: Experiment, captions: Path) -> None:
    bert = save_bert(experiment.root / "bert", WORDS)
    settings = {"sentences": {"source": str(bert), "dtype": "float32", "max_length": 32}}
    report = score(captions, experiment.manifest, settings)
    assert list(report["metrics"]) == ["sentence_similarity"]
    assert "pool=mean" in report["protocol"]


REFERENCES = [["a dog", "the dog runs on grass"], ["red cat sits"], ["the cat sits", "a red dog", "grass"], ["a dog"]]


def test_greedy_matches_of_known_angles() -> None:
    """Caption tokens at 0 and 90 degrees, reference tokens at 60 and 180: cosines [[.5, -1], [.866, 0]]."""
    caption, reference = Tokens(rotated(0, 90), np.ones(2)), Tokens(rotated(60, 180), np.ones(2))
    p, r = (0.5 + math.sqrt(3) / 2) / 2, (math.sqrt(3) / 2 + 0) / 2
    assert greedy_match(caption, reference) == pytest.approx((p, r, 2 * p * r / (p + r)))
    weighed = greedy_match(Tokens(caption.vectors, np.array([3.0, 1])), Tokens(reference.vectors, np.array([0.0, 2])))
    assert weighed[:2] == pytest.approx(((3 * 0.5 + math.sqrt(3) / 2) / 4, 0.0))
    assert greedy_match(caption, Tokens(rotated(60), np.zeros(1))) == (0, 0, 0)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    texts = [(str(image), "en", text) for image, texts in enumerate(REFERENCES) for text in texts]
    return write_data_set(tmp_path / "data", {str(image): "train" for image in range(len(CAPTIONS))}, texts)


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return save_bert(tmp_path / "bert", WORDS, 16, num_hidden_layers=3, initializer_range=2.0)


def bert_scored(manifest: Path, bert: Path, options: dict[str, Any], **encoder: Any) -> dict[str, Any]:
    images = read_manifest(manifest).images["image_id"]
    captions = write_texts(manifest.with_name("captions.json"), dict(zip(images, CAPTIONS, strict=True)))
    settings = {
        "metrics": {"bert_score": {"text_encoder": "bert", **options}, "bootstrap_samples": 20},
        "bert": {"source": str(bert), "dtype": "float32", "max_length": 32, **encoder},
    }
    return score(captions, manifest, settings)


def plainly(bert: Path, layer: int, idf: bool) -> np.ndarray:
    """(N, 3) from sentences encoded one by one."""
    tokenizer, model = AutoTokenizer.from_pretrained(bert), BertModel.from_pretrained(bert).eval()
    flat = [set(tokenizer(text)["input_ids"]) for texts in REFERENCES for text in texts]

    def weight(token: int) -> float:
        if token in (tokenizer.cls_token_id, tokenizer.sep_token_id):
            return 0.0
        return math.log((len(flat) + 1) / (sum(token in ids for ids in flat) + 1)) if idf else 1.0

    @torch.inference_mode()
    def read(text: str) -> tuple[list[float], torch.Tensor]:
        given = tokenizer(text, return_tensors="pt")
        states = model(**given, output_hidden_states=True).hidden_states
        return [weight(token) for token in given["input_ids"][0].tolist()], states[layer][0]

    rows = []
    for caption, texts in zip(CAPTIONS, REFERENCES, strict=True):
        each = []
        for text in texts:
            (w, a), (v, b) = read(caption), read(text)
            cosines = cosine_similarity(a, b)
            p, r = np.average(cosines.max(axis=1), weights=w), np.average(cosines.max(axis=0), weights=v)
            each.append((p, r, 2 * p * r / (p + r)))
        rows.append(np.max(each, axis=0))
    return np.array(rows)


@pytest.mark.parametrize(("layer", "idf"), [(None, False), (2, False), (1, True)])
def test_the_stage_scores_as_a_plain_computation(manifest: Path, bert: Path, layer: int | None, idf: bool) -> None:
    found = bert_scored(manifest, bert, {"layer": layer, "idf": idf})
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
        bert_scored(manifest, bert, {"layer": 9})
    with pytest.raises(UserError, match="BERTScore compares tokens"):
        bert_scored(manifest, bert, {}, output="aligned")
