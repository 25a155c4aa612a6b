"""A whole experiment, very small, as its rules lay it out: photographs, features, a captioner, two retrievers."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vitcapr
from tests.checkpoints import save_bert, save_checkpoint, tiny_vit
from tests.data_sets import write_data_set

IMAGES = 12
THINGS = ["dog", "cat", "boat", "man", "girl", "bird"]


def write_backbones(backbones: Path) -> None:
    save_checkpoint(tiny_vit(num_hidden_layers=1, intermediate_size=8), backbones / "noise-vit")
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
    data = results / "data"
    write_backbones(root / "backbones")
    write_photographs(data, root / "photos")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITCAPR_BACKBONES", str(root / "backbones"))
        patch.setenv("VITCAPR_STORES", str(root / "results/stores"))
        vit, mirrored = (
            vitcapr.extract(data, "noise-vit", results / "features" / name, dtype="float32", chunk=4, mirror=mirror)
            for name, mirror in (("vit", False), ("mirrored", True))
        )
        bert = vitcapr.extract_text(data, "tiny-bert", results / "text_features/bert", dtype="float32", device="cpu")
        inputs = (data, vit, vitcapr.build_vocabulary(data, results / "text", vocabulary={"min_count": 1}))
        phases = {"phases": [{"epochs": 3, "batch_images": 4, "learning_rate": 0.01}], "precision": "float32"}
        for kind in ("patch_attention", "baseline"):
            sizes = {"architecture": kind, "embedding_dim": 4, "hidden_dim": 6}
            vitcapr.train_captioner(*inputs, results / "captioners" / kind, training=phases, **sizes)
        words = {"word_dim": 4, "hidden_dim": 4}
        for kind, more in (
            ("words", {"text": words}),
            ("bert", {"text_features": bert}),
            ("augmented_views", {"text": words, "augmented_views": [mirrored]}),
        ):
            vitcapr.train_retriever(*inputs, results / "retrievers" / kind, embedding_dim=5, training=phases, **more)
    return root


@pytest.fixture
def project(_experiment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a user stands in: ``photos/``, ``results/toy/`` and the folder of backbones."""
    monkeypatch.chdir(_experiment)
    monkeypatch.setenv("VITCAPR_BACKBONES", str(_experiment / "backbones"))
    return _experiment
