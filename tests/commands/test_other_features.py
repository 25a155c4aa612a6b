"""Models on other features than those of the last layer: a hidden layer, also of files, and features of other
programs with their arrays, widths and grids."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import vitcapr
from tests.checkpoints import run_features
from tests.commands.stores import train
from vitcapr.errors import UserError
from vitcapr.formats.embeddings import read_embeddings
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.model import CARD, WEIGHTS, read_card

pytestmark = pytest.mark.usefixtures("copied_project")
RESULTS = Path("results/toy")
DEEP, MIRRORED = RESULTS / "features/deep", RESULTS / "features/deep-mirrored"
FILES = {"features": DEEP, "manifest": RESULTS / "data", "vocabulary": RESULTS / "text/vocabulary.json"}
PHASES = {"phases": [{"epochs": 3, "batch_images": 4, "learning_rate": 0.01}], "precision": "float32"}
CAPTIONER: dict[str, Any] = {"embedding_dim": 4, "hidden_dim": 6, "training": PHASES}
BAG = {"word_dim": 4, "head": {"kind": "residual", "hidden_dim": 4}}
RETRIEVER = {"embedding_dim": 5, "text": BAG, "training": PHASES}
PHOTOGRAPHS = [f"photos/photo {number:02d}.png" for number in (3, 7, 11)]
"""Those of the test split."""


@pytest.fixture
def layered(copied_project: Path) -> None:
    """Features of layer 1 too."""
    for features, mirror in ((DEEP, False), (MIRRORED, True)):
        if not (copied_project / features).exists():
            vitcapr.extract(RESULTS / "data", "noise-vit", features, dtype="float32", layers=[1], mirror=mirror)


@pytest.mark.usefixtures("layered")
def test_a_captioner_reads_a_layer_of_the_store_and_of_a_file() -> None:
    folder = train("captioner", DEEP, RESULTS / "captioners/deep", layer=1, **CAPTIONER)
    plain = train("captioner", DEEP, RESULTS / "captioners/plain", **CAPTIONER)
    assert read_card(folder / CARD)["settings"]["captioner"]["layer"] == 1
    assert "layer" not in read_card(plain / CARD)["settings"]["captioner"]
    learned = load_file(folder / WEIGHTS)
    assert not all(np.array_equal(weights, learned[name]) for name, weights in load_file(plain / WEIGHTS).items())

    captioner = vitcapr.load_captioner(folder, beam_size=3)
    settings = {"decoding": {"beam_size": 3}}
    vitcapr.run("decode", settings, **FILES, captioner=folder, split="test", captions=RESULTS / "captions.json")
    of_stage = json.loads((RESULTS / "captions.json").read_text())
    found = captioner.caption(PHOTOGRAPHS)
    assert [one.caption for one in found] == [entry["caption"] for entry in of_stage]
    expected = pytest.approx([entry["log_prob"] for entry in of_stage], abs=1e-5)
    assert [one.log_prob for one in found] == expected


@pytest.mark.usefixtures("layered")
def test_a_retriever_reads_a_layer_of_each_view_and_of_a_file() -> None:
    views = {"augmented_views": [MIRRORED]}
    settings = {"augmented_views": ["deep-mirrored"], **RETRIEVER}
    folder = train("retriever", DEEP, RESULTS / "retrievers/deep", views, layer=1, **settings)
    plain = train("retriever", DEEP, RESULTS / "retrievers/plain", views, **settings)
    for model in (folder, plain):
        output = RESULTS / f"{model.name}.npz"
        vitcapr.run("embed", **FILES, **views, retriever=model, split="test", embeddings=output)
    deep, last = (read_embeddings(RESULTS / f"{name}.npz").images for name in ("deep", "plain"))
    assert not np.allclose(deep, last, atol=0.01)
    retriever = vitcapr.load_retriever(folder)
    assert retriever.embed_images(PHOTOGRAPHS) == pytest.approx(deep, abs=1e-5)
    nearest = retriever.search(image="photos/photo 07.png", k=1)
    assert nearest["path"].tolist() == ["photo 07.png"]
    assert nearest["cosine"].tolist() == pytest.approx([1], abs=1e-5)


def imported(*options: str, **widths: int) -> Path:
    """A store with vectors or four patches of these widths."""
    ids = read_manifest(RESULTS / "data/manifest.json").image_table.column("image_id").tolist()
    draw = np.random.default_rng(0)
    shapes = {name: (len(ids), 4, width) if name == "patches" else (len(ids), width) for name, width in widths.items()}
    np.savez("f.npz", ids=np.array(ids), **{name: draw.normal(size=shape) for name, shape in shapes.items()})
    output = run_features("import", "f.npz", "--data", RESULTS / "data/manifest.json", *options)
    return Path(output.splitlines()[0].removeprefix("sealed: "))


def captioner(features: Path, **settings: Any) -> Path:
    return train("captioner", features, Path("captioner"), **CAPTIONER, **settings)


def test_patches_alone_train_what_reads_patches_alone() -> None:
    folder = captioner(imported(patches=6), init_from_cls=False)
    assert read_card(folder / CARD)["architecture"]["feature_dim"] == 6
    with pytest.raises(UserError, match="has no 'cls', only patches"):
        captioner(imported(patches=6))


def test_a_model_reads_each_array_at_its_own_width() -> None:
    features = imported(patches=6, cls=3)
    widths = {"feature_dim": 6, "cls_dim": 3}
    assert widths.items() <= read_card(captioner(features) / CARD)["architecture"].items()
    assert read_card(captioner(features, architecture="baseline") / CARD)["architecture"]["feature_dim"] == 3
    image = {"pool": "cls_mean"}
    train("retriever", features, Path("retriever"), image=image, training=PHASES)
