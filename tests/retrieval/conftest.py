"""A small data set with image features, captions as words, and the features of a tiny BERT."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checkpoints import save_bert
from tests.commands.stores import write_store
from tests.data_sets import write_data_set
from vitcapr.config.base import parse_settings
from vitcapr.config.text import VocabularySettings
from vitcapr.pipeline.run import run_stage
from vitcapr.progress import Reporter
from vitcapr.stages.extract_text import extract_text
from vitcapr.stages.vocabulary import vocabulary

IMAGES, PATCHES, WIDTH = 12, 4, 6
THINGS = ["dog", "cat", "boat", "man", "girl", "bird", "horse", "car", "tree", "ball", "bike", "house"]


@dataclass(frozen=True)
class Files:
    root: Path

    @property
    def inputs(self) -> dict[str, Path]:
        """What both commands read, by option."""
        return {
            "features": self.root / "features.json",
            "manifest": self.root / "data" / "manifest.json",
            "vocabulary": self.root / "vocabulary.json",
        }

    @property
    def mirrored(self) -> Path:
        """Other features of the same images."""
        return self.root / "mirrored.json"

    @property
    def text_features(self) -> Path:
        return self.root / "text_features.json"

    @property
    def bert(self) -> Path:
        return self.root / "tiny-bert"

    def settings(self, text: dict[str, Any] | None = None, augmented_views: Sequence[str] = (), **training: Any) -> str:
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
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    made = Files(tmp_path_factory.mktemp("retrieval"))
    write_dataset(made.root / "data")
    write_features(made.root)
    write_features(made.root, "mirrored", seed=1)
    save_bert(made.bert, ["a", "the", "big", ".", *THINGS], intermediate_size=8, max_position_embeddings=32)
    manifest = made.inputs["manifest"]
    settings = '{"text": {"vocabulary": {"min_count": 1, "splits": ["train", "test"]}}}'
    vocabulary(
        manifest,
        parse_settings(VocabularySettings, settings),
        Reporter(),
        vocabulary=made.inputs["vocabulary"],
        tokens=made.root / "tokens.npz",
    )
    encoder = {"source": str(made.bert), "dtype": "float32", "store_dtype": "float32", "max_length": 16}
    run_stage(
        extract_text,
        manifest=manifest,
        stores=made.root / "stores",
        sealed=made.text_features,
        settings=json.dumps({"text_encoder": encoder}),
    )
    return made
