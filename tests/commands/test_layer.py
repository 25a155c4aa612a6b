"""Models that read a hidden layer: what they learn, and the same layer for files of one's own."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import vitcapr
from tests.checkpoints import extract_features
from vitcapr.formats.embeddings import read_embeddings
from vitcapr.formats.model import CARD, WEIGHTS, read_card
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import Stage
from vitcapr.stages.decode import decode
from vitcapr.stages.embed import embed
from vitcapr.stages.train_captioner import train_captioner
from vitcapr.stages.train_retriever import train_retriever

RESULTS = Path("results/toy")
MANIFEST, WORDS = RESULTS / "data/manifest.json", RESULTS / "text/vocabulary.json"
FEATURES, MIRRORED = RESULTS / "features/deep/manifest.json", RESULTS / "features/deep-mirrored/manifest.json"
PHASES = {"phases": [{"epochs": 3, "batch_images": 4, "learning_rate": 0.01}], "precision": "float32"}
CAPTIONER = {"embedding_dim": 4, "hidden_dim": 6, "training": PHASES}
RETRIEVER = {"embedding_dim": 5, "text": {"word_dim": 4, "hidden_dim": 4}, "training": PHASES}


@pytest.fixture
def layered(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the small experiment, with features of layer 1 too."""
    monkeypatch.chdir(shutil.copytree(project, tmp_path / "project"))
    for sealed, mirror in ((FEATURES, False), (MIRRORED, True)):
        stores = Path("results/stores")
        extract_features(MANIFEST, stores, sealed.parent, source="noise-vit", layers=[1], mirror=mirror)


def train(stage: Stage, name: str, wanted: dict[str, Any], **more: Any) -> Path:
    kind = stage.name.removeprefix("train_")
    folder = RESULTS / f"{kind}s" / name
    inputs = {"features": FEATURES, "manifest": MANIFEST, "tokens": RESULTS / "text/tokens.npz", "vocabulary": WORDS}
    run_stage(stage, settings=json.dumps({kind: {"backbone": "deep", **wanted}}), **inputs, **{kind: folder}, **more)
    return folder


@pytest.mark.usefixtures("layered")
def test_a_captioner_reads_a_layer_of_the_store_and_of_a_file() -> None:
    folder = train(train_captioner, "deep", {**CAPTIONER, "layer": 1})
    plain = train(train_captioner, "plain", CAPTIONER)
    assert read_card(folder / CARD)["settings"]["captioner"]["layer"] == 1
    assert "layer" not in read_card(plain / CARD)["settings"]["captioner"]
    learned = load_file(folder / WEIGHTS)
    assert not all(np.array_equal(weights, learned[name]) for name, weights in load_file(plain / WEIGHTS).items())

    captions, beam = RESULTS / "captions.json", {"beam_size": 3, "max_length": 6, "precision": "float32"}
    inputs = {"features": FEATURES, "manifest": MANIFEST, "vocabulary": WORDS, "captioner": folder, "split": "test"}
    log = RESULTS / "logs/decode/deep.beam.test.log"
    run_stage(decode, log, settings=json.dumps({"decoding": beam}), **inputs, captions=captions)
    of_stage = json.loads(captions.read_text())
    photographs = [f"photos/photo {number:02d}.png" for number in (3, 7, 11)]
    found = vitcapr.load_captioner(folder).caption(photographs)
    assert [one.caption for one in found] == [entry["caption"] for entry in of_stage]
    expected = pytest.approx([entry["log_prob"] for entry in of_stage], abs=1e-5)
    assert [one.log_prob for one in found] == expected


@pytest.mark.usefixtures("layered")
def test_a_retriever_reads_a_layer_of_each_view_and_of_a_file() -> None:
    wanted = {**RETRIEVER, "layer": 1, "augmented_views": ["deep-mirrored"]}
    folder = train(train_retriever, "deep", wanted, augmented_views=[MIRRORED])
    plain = train(
        train_retriever, "plain", {**RETRIEVER, "augmented_views": ["deep-mirrored"]}, augmented_views=[MIRRORED]
    )
    embeddings: dict[Path, np.ndarray] = {}
    for model in (folder, plain):
        out = RESULTS / f"{model.name}.npz"
        inputs = {"features": FEATURES, "manifest": MANIFEST, "vocabulary": WORDS, "retriever": model, "split": "test"}
        run_stage(embed, **inputs, augmented_views=[MIRRORED], embeddings=out)
        embeddings[model] = read_embeddings(out).images
    assert not np.allclose(embeddings[folder], embeddings[plain], atol=0.01)
    retriever = vitcapr.load_retriever(folder)
    of_files = retriever.embed_images([f"photos/photo {number:02d}.png" for number in (3, 7, 11)])
    assert of_files == pytest.approx(embeddings[folder], abs=1e-5)
    nearest = retriever.search(image="photos/photo 07.png", k=1)
    assert nearest["path"].tolist() == ["photo 07.png"]
    assert nearest["cosine"].tolist() == pytest.approx([1], abs=1e-5)
