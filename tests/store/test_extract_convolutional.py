"""A convolutional network from pictures to a sealed store, and DeViSE trained on it."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from transformers import AutoImageProcessor

from tests.encoders.convolutional import SIZE, save
from vitcapr.config.base import parse_settings
from vitcapr.config.text import VocabularySettings
from vitcapr.encoders.photographs import open_like
from vitcapr.formats.manifest import write_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.progress import Reporter
from vitcapr.stages.embed import embed
from vitcapr.stages.extract_text import extract_text
from vitcapr.stages.train_retriever import train_retriever
from vitcapr.stages.vocabulary import vocabulary

COLOURS = {"red": (220, 30, 30), "green": (30, 220, 30), "blue": (30, 30, 220)}
IMAGES = 30


def coloured(folder: Path) -> Path:
    """A manifest of noisy pictures of one colour each, which their captions name; the last six are for validation."""
    (folder / "pictures").mkdir(parents=True)
    generator, names = np.random.default_rng(0), list(COLOURS)
    images, captions = [], []
    for number in range(IMAGES):
        colour, split = names[number % 3], "train" if number < IMAGES - 6 else "validation"
        height, width = 50 + number % 5, 70 - number % 7
        pixels = np.clip(COLOURS[colour] + generator.normal(0, 20, (height, width, 3)), 0, 255).astype(np.uint8)
        path = folder / "pictures" / f"{number}.png"
        Image.fromarray(pixels).save(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        images.append((str(number), path.name, split, width, height, digest))
        captions.append((f"{number}#0", str(number), "en", f"all {colour}", split))
    return write_manifest(
        folder,
        dataset="colours",
        image_root=folder / "pictures",
        images=pd.DataFrame(images, columns=["image_id", "path", "split", "width", "height", "sha256"]),
        captions=pd.DataFrame(captions, columns=["caption_id", "image_id", "language", "text", "split"]),
        rejected=[],
        objects=None,
    )


@pytest.mark.parametrize("family", ["resnet", "convnext"])
def test_devise_learns_colours_from_a_store_of_a_cnn(tmp_path: Path, experiment: Any, family: str) -> None:
    whole = save(family, tmp_path / "cnn")
    colours = replace(experiment, manifest=coloured(tmp_path / "colours"), backbone=tmp_path / "cnn")
    store = colours.run(store_dtype="float32")
    processor = AutoImageProcessor.from_pretrained(tmp_path / "cnn", backend="pil")
    pictures = [Image.open(tmp_path / "colours" / "pictures" / f"{number}.png") for number in range(IMAGES)]
    with torch.inference_mode():
        own = whole.base_model(processor(images=pictures, return_tensors="pt")["pixel_values"])
    assert store.grid == own.last_hidden_state.shape[2:]
    np.testing.assert_allclose(store["cls"][:], own.pooler_output.flatten(1), atol=1e-5)
    np.testing.assert_allclose(store["patches"][:], own.last_hidden_state.flatten(2).mT, atol=1e-5)
    encoder = open_like(store.attributes, torch.device("cpu"), str(tmp_path / "cnn"))
    assert encoder.grid == store.grid
    assert encoder.seen(pictures[1]).size == (SIZE, SIZE)
    np.testing.assert_allclose(encoder.encode(pictures[:2])["cls"], store["cls"][:2], atol=1e-5)

    vectors = tmp_path / "vectors.txt"
    vectors.write_text("red 1 0 0\ngreen 0 1 0\nblue 0 0 1\n", encoding="utf-8")
    encoder = {"source": str(vectors), "output": "word_vectors", "store_dtype": "float32"}
    text_features, words, tokens = (tmp_path / name for name in ("text.json", "vocabulary.json", "tokens.npz"))
    run_stage(
        extract_text,
        manifest=colours.manifest,
        stores=tmp_path / "stores",
        sealed=text_features,
        settings=json.dumps({"text_encoder": encoder}),
    )
    every_word = parse_settings(VocabularySettings, '{"text": {"vocabulary": {"min_count": 1}}}')
    vocabulary(colours.manifest, every_word, Reporter(), vocabulary=words, tokens=tokens)
    phase = {"epochs": 60, "batch_images": 8, "captions_per_image": 1, "learning_rate": 0.03, "schedule": "cosine"}
    devise = {
        "backbone": "cnn",
        "embedding_dim": 3,
        "image": {"head": "matrix"},
        "text": {"kind": "features", "encoder": "colours", "head": "none"},
        "training": {"phases": [{**phase, "objective": "hinge_rank", "margin": 0.1}], "device": "cpu"},
    }
    paths = {
        "features": store.manifest_path,
        "manifest": colours.manifest,
        "vocabulary": words,
        "text_features": text_features,
    }
    folder, output = tmp_path / "devise", tmp_path / "embeddings.npz"
    run_stage(train_retriever, settings=json.dumps({"retriever": devise}), tokens=tokens, retriever=folder, **paths)
    run_stage(embed, retriever=folder, split="validation", embeddings=output, **paths)
    with np.load(output) as made:
        scores = made["images"] @ made["captions"].T
    assert (scores.argmax(axis=1) % 3).tolist() == [0, 1, 2, 0, 1, 2]
