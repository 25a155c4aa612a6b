"""CLIPScore and RefCLIPScore, against another implementation and by hand."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import CLIPModel, CLIPProcessor

from tests.checkpoints import Experiment, make_dataset
from tests.data_sets import write_texts
from tests.encoders.two_towers import ROOM, clip
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.scores import read_metrics
from vitcapr.metrics.clip_score import PROMPT, clip_scores
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
    texts += [PROMPT + text for text in read_manifest(experiment.manifest).captions["text"]]
    cut = sum(len(processor.tokenizer(text)["input_ids"]) >= ROOM for text in texts)
    assert f"w=2.5,prompt=A photo depicts,max_length={ROOM},cut={cut}" in found["protocol"]


def test_another_model_is_refused(experiment: Experiment, captions: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(experiment.backbone, other)
    torch.manual_seed(1)
    CLIPModel(CLIPModel.from_pretrained(other).config).save_pretrained(other)
    with pytest.raises(UserError, match="the features are of clip, and other@"):
        scored(experiment, captions, other)
