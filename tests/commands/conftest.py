"""A whole experiment, very small, as its rules lay it out: photographs, features, a captioner, two retrievers."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import ViTConfig, ViTModel

from tests.checkpoints import PROCESSOR, extract_features, save_bert
from tests.data_sets import write_data_set
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.extract_text import extract_text
from vitcapr.stages.train_captioner import train_captioner
from vitcapr.stages.train_retriever import train_retriever
from vitcapr.stages.vocabulary import vocabulary

IMAGES = 12
THINGS = ["dog", "cat", "boat", "man", "girl", "bird"]
SHAPE = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def write_backbones(backbones: Path) -> None:
    torch.manual_seed(0)
    vit = ViTConfig(**SHAPE, image_size=16, patch_size=8, initializer_range=0.5)
    ViTModel(vit, add_pooling_layer=False).save_pretrained(backbones / "noise-vit")
    (backbones / "noise-vit" / "preprocessor_config.json").write_text(json.dumps(PROCESSOR))
    save_bert(backbones / "tiny-bert", ["a", "big", *THINGS], intermediate_size=8)


def write_photographs(data: Path, pictures: Path) -> None:
    """Twelve images of noise, "photo 00.png" and so on, with two captions each."""
    draw = np.random.default_rng(0)
    pictures.mkdir()
    splits, captions = {}, []
    for number in range(IMAGES):
        name, size = f"{number:02d}", (18 + number % 5, 20 + number % 7, 3)
        Image.fromarray(draw.integers(0, 256, size, dtype=np.uint8)).save(pictures / f"photo {name}.png")
        splits[name] = ("train", "train", "validation", "test")[number % 4]
        captions += [(name, "en", f"{start} {THINGS[number % 6]}.") for start in ("A", "The big")]
    write_data_set(data, splits, captions, "toy", pictures, "photo {}.png")


@pytest.fixture(scope="session")
def _experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    results = root / "results" / "toy"
    write_backbones(root / "backbones")
    write_photographs(results / "data", root / "photos")
    manifest, stores = results / "data/manifest.json", root / "results/stores"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITCAPR_BACKBONES", str(root / "backbones"))
        features, mirrored = (
            extract_features(manifest, stores, results / "features" / name, source="noise-vit", mirror=mirror)
            for name, mirror in (("vit", False), ("mirrored", True))
        )
        encoder = {"source": "tiny-bert", "dtype": "float32", "device": "cpu"}
        text_features = results / "text_features/bert/manifest.json"
        settings = json.dumps({"text_encoder": encoder})
        run_stage(extract_text, manifest=manifest, stores=stores, sealed=text_features, settings=settings)
        words, tokens = results / "text/vocabulary.json", results / "text/tokens.npz"
        run_stage(
            vocabulary,
            manifest=manifest,
            vocabulary=words,
            tokens=tokens,
            settings='{"text": {"vocabulary": {"min_count": 1}}}',
        )
        inputs = {"features": features, "manifest": manifest, "tokens": tokens, "vocabulary": words}
        phases = {"phases": [{"epochs": 3, "batch_images": 4, "learning_rate": 0.01}], "precision": "float32"}
        for kind in ("patch_attention", "baseline"):
            architecture = {"architecture": kind, "embedding_dim": 4, "hidden_dim": 6}
            settings = {"captioner": {"backbone": "vit", **architecture, "training": phases}}
            folder = results / "captioners" / kind
            run_stage(train_captioner, settings=json.dumps(settings), **inputs, captioner=folder)
        for kind, tower, given, view in (
            ("words", {"word_dim": 4, "hidden_dim": 4}, None, None),
            ("bert", {"kind": "features", "encoder": "bert"}, text_features, None),
            ("augmented_views", {"word_dim": 4, "hidden_dim": 4}, None, mirrored),
        ):
            settings = {"retriever": {"backbone": "vit", "embedding_dim": 5, "text": tower, "training": phases}}
            if view is not None:
                settings["retriever"]["augmented_views"] = ["mirrored"]
            folder = results / "retrievers" / kind
            run_stage(
                train_retriever,
                settings=json.dumps(settings),
                **inputs,
                text_features=given,
                augmented_views=None if view is None else [view],
                retriever=folder,
            )
    return root


@pytest.fixture
def project(_experiment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a user stands in: ``photos/``, ``results/toy/`` and the folder of backbones."""
    monkeypatch.chdir(_experiment)
    monkeypatch.setenv("VITCAPR_BACKBONES", str(_experiment / "backbones"))
    return _experiment
