"""A small data set with image features, captions as words, and the features of a tiny BERT."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.checkpoints import save_bert
from tests.commands.stores import write_store
from tests.data_sets import write_data_set
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.extract_text import extract_text
from vitcapr.stages.vocabulary import vocabulary

IMAGES, PATCHES, WIDTH = 12, 4, 6
THINGS = ["dog", "cat", "boat", "man", "girl", "bird", "horse", "car", "tree", "ball", "bike", "house"]


def settings(text: dict[str, Any] | None = None, augmented_views: Sequence[str] = (), **training: Any) -> str:
    phase = {"epochs": 2, "batch_images": 4, "learning_rate": 0.01}
    retriever = {
        "backbone": "vit",
        "augmented_views": list(augmented_views),
        "embedding_dim": 5,
        "text": text or {"word_dim": 4, "hidden_dim": 4},
        "training": {"phases": [phase], "precision": "float32", **training},
    }
    return json.dumps({"retriever": retriever})


def write_dataset(folder: Path) -> None:
    splits = {f"image{n}": "test" if n % 4 == 3 else "validation" if n % 4 == 1 else "train" for n in range(IMAGES)}
    captions = [
        (name, language, f"{text} {thing}.")
        for name, thing in zip(splits, THINGS, strict=True)
        for language, text in (("en", "A"), ("zh", "那"), ("en", "The big"))
    ]
    write_data_set(folder, splits, captions, name="toy")


def write_features(root: Path, name: str = "features", seed: int = 0) -> None:
    draw = np.random.default_rng(seed)
    arrays = {
        "patches": draw.normal(size=(IMAGES, PATCHES, WIDTH)).astype(np.float16),
        "cls": draw.normal(size=(IMAGES, WIDTH)).astype(np.float16),
    }
    fingerprint, names = ("d" if name == "mirrored" else "f") * 64, [f"image{number}" for number in range(IMAGES)]
    write_store(root, arrays, names, chunk=4, sealed=f"{name}.json", fingerprint=fingerprint, grid=[2, 2])


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """``inputs`` is what both commands read, by option; ``mirrored``, other features of the same images."""
    root = tmp_path_factory.mktemp("retrieval")
    inputs = {
        "features": root / "features.json",
        "manifest": root / "data" / "manifest.json",
        "vocabulary": root / "vocabulary.json",
    }
    write_dataset(root / "data")
    write_features(root)
    write_features(root, "mirrored", seed=1)
    bert = save_bert(root / "tiny-bert", ["a", "the", "big", ".", *THINGS], intermediate_size=8)
    words = '{"text": {"vocabulary": {"min_count": 1, "splits": ["train", "test"]}}}'
    run_stage(
        vocabulary,
        manifest=inputs["manifest"],
        vocabulary=inputs["vocabulary"],
        tokens=root / "tokens.npz",
        settings=words,
    )
    encoder = {"source": str(bert), "dtype": "float32", "store_dtype": "float32", "max_length": 16}
    text_features = root / "text_features.json"
    run_stage(
        extract_text,
        manifest=inputs["manifest"],
        stores=root / "stores",
        sealed=text_features,
        settings=json.dumps({"text_encoder": encoder}),
    )
    return SimpleNamespace(
        root=root,
        inputs=inputs,
        bert=bert,
        text_features=text_features,
        mirrored=root / "mirrored.json",
        settings=settings,
    )
