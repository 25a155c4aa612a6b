"""CLIPScore, RefCLIPScore and the similarity of sentences, against other implementations and by hand."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import CLIPModel, CLIPProcessor

from tests.checkpoints import Experiment, make_dataset, save_bert
from tests.data_sets import write_texts
from tests.encoders.two_towers import ROOM, WORDS, clip
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.scores import read_metrics
from vitcapr.metrics.similarity import clip_scores, sentence_similarity
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


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return Experiment(tmp_path, make_dataset(tmp_path / "data", len(CAPTIONS)), clip(tmp_path / "clip"))


@pytest.fixture
def captions(experiment: Experiment) -> Path:
    images = read_manifest(experiment.manifest).images["image_id"]
    return write_texts(experiment.root / "captions.json", dict(zip(images, CAPTIONS, strict=True)))


def scored(experiment: Experiment, captions: Path, text: Path, **settings: Any) -> dict[str, Any]:
    encoder = {"source": str(text), "output": "aligned", "dtype": "float32", "max_length": ROOM}
    metrics = {"clip_score": {"backbone": "clip", "text_encoder": "clip", "prompt": ""}, "bootstrap_samples": 20}
    store = experiment.run(source="clip", output="aligned", store_dtype="float32")
    run_stage(
        score_similarity,
        captions=captions,
        manifest=experiment.manifest,
        split="train",
        features=store.manifest_path,
        metrics=experiment.root / "similarity.json",
        settings=json.dumps({"metrics": metrics, "clip": encoder, "device": "cpu", **settings}),
    )
    return read_metrics(experiment.root / "similarity.json")


def test_clip_score_is_the_cosine_of_the_whole_model(experiment: Experiment, captions: Path) -> None:
    """Of images and texts together, by transformers' own processor and CLIPModel."""
    found = scored(experiment, captions, experiment.backbone)
    model = CLIPModel.from_pretrained(experiment.backbone)
    processor = CLIPProcessor.from_pretrained(experiment.backbone)
    paths = read_manifest(experiment.manifest).images["path"]
    pictures = [Image.open(experiment.root / "data" / "pictures" / path).convert("RGB") for path in paths]
    with torch.inference_mode():
        output = model.eval()(**processor(text=CAPTIONS, images=pictures, return_tensors="pt", padding=True))
        cosines = (output.logits_per_image / model.logit_scale.exp()).diagonal()
    assert found["metrics"]["clip_score"]["value"] == pytest.approx(2.5 * cosines.clamp(min=0).mean().item(), abs=2e-4)
    assert 0 < found["metrics"]["ref_clip_score"]["value"] < 2.5
    assert "w=2.5,prompt=none" in found["protocol"]


def test_another_model_is_refused(experiment: Experiment, captions: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(experiment.backbone, other)
    torch.manual_seed(1)
    CLIPModel(CLIPModel.from_pretrained(other).config).save_pretrained(other)
    with pytest.raises(UserError, match="the features are of clip, and other@"):
        scored(experiment, captions, other)


def test_sentences_are_compared_by_a_text_encoder_alone(experiment: Experiment, captions: Path) -> None:
    bert = save_bert(experiment.root / "bert", WORDS)
    settings = {"sentences": {"source": str(bert), "dtype": "float32", "max_length": 32}, "device": "cpu"}
    files = {"captions": captions, "manifest": experiment.manifest, "metrics": experiment.root / "similarity.json"}
    run_stage(score_similarity, split="train", settings=json.dumps(settings), **files)
    found = read_metrics(experiment.root / "similarity.json")
    assert list(found["metrics"]) == ["sentence_similarity"]
    assert "pool=mean" in found["protocol"]
