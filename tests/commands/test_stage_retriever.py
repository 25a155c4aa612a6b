"""``train_retriever`` and ``embed`` as a user runs them, and the retriever opened from its folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.data_sets import rewrite
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.model import write_card
from vitcapr.pipeline.run import run_stage
from vitcapr.retrieval.embedder import Retriever, open_retriever
from vitcapr.stages.embed import embed
from vitcapr.stages.extract_text import extract_text
from vitcapr.stages.train_retriever import train_retriever
from vitcapr.store.reader import open_features

pytestmark = pytest.mark.usefixtures("project")

RESULTS = Path("results/toy")
VIT, MIRRORED = (RESULTS / "features" / name / "manifest.json" for name in ("vit", "mirrored"))
BERT, TEXT_FEATURES = "backbones/tiny-bert", RESULTS / "text_features/bert/manifest.json"
MANIFEST, VOCABULARY = RESULTS / "data/manifest.json", RESULTS / "text/vocabulary.json"
INPUTS = {"features": VIT, "manifest": MANIFEST, "vocabulary": VOCABULARY}
"""What both commands read."""
FEATURES = {"kind": "features", "encoder": "bert"}


def settings(text: dict[str, Any] | None = None, augmented_views: Sequence[str] = (), **more: Any) -> str:
    phase = {"epochs": 2, "batch_images": 4, "learning_rate": 0.01}
    retriever = {
        "backbone": "vit",
        "augmented_views": list(augmented_views),
        "embedding_dim": 5,
        "text": text or {"word_dim": 4, "head": {"kind": "residual", "hidden_dim": 4}},
        "training": {"phases": [phase], "precision": "float32"},
    }
    return {"retriever": retriever | more}


def train(folder: Path, chosen: str | None = None, **options: Any) -> Path:
    tokens = RESULTS / "text/tokens.npz"
    run_stage(train_retriever, **INPUTS, tokens=tokens, retriever=folder, settings=chosen or settings(), **options)
    return folder


def embedded(retriever: Path, output: Path, split: str = "test", **options: Any) -> dict[str, np.ndarray]:
    files = {**INPUTS, "retriever": retriever, "embeddings": output, **options}
    run_stage(embed, **files, split=split)
    with np.load(output) as stored:
        return dict(stored)


def opened(folder: Path, **options: Any) -> Retriever:
    return open_retriever(folder, vocabulary=VOCABULARY, device=torch.device("cpu"), **options)


def test_a_retriever_of_words(tmp_path: Path) -> None:
    folder = train(tmp_path / "words", log=tmp_path / "log")
    assert {path.name for path in folder.iterdir()} == {
        *("best.safetensors", "card.json", "history.csv", "sweep.csv", "gpu.csv"),
    }
    card = json.loads((folder / "card.json").read_text())
    assert card["text_encoder"] is None
    assert card["architecture"]["image"]["feature_dim"] == 8
    history = (folder / "history.csv").read_text().splitlines()
    assert len(history) == 3
    assert history[0].startswith("epoch,phase,train_loss,validation_loss,validation_rsum,")

    arrays = embedded(folder, tmp_path / "out" / "embeddings.npz", log=tmp_path / "log")
    data = read_manifest(MANIFEST)
    assert arrays["image_row"].tolist() == [3, 7, 11]
    captions = data.captions.iloc[arrays["caption_row"]]
    assert captions["image_id"].tolist() == [name for name in ("03", "07", "11") for _ in range(2)]
    assert arrays["caption_image"].tolist() == [0, 0, 1, 1, 2, 2]
    assert {name: array.dtype.name for name, array in arrays.items()} == {
        "images": "float32",
        "captions": "float32",
        "image_row": "int32",
        "caption_row": "int32",
        "caption_image": "int32",
    }
    assert arrays["images"].shape == (3, 5)
    for name in ("images", "captions"):
        np.testing.assert_allclose(np.linalg.norm(arrays[name], axis=1), 1, atol=1e-6)
    retriever = opened(folder)
    with open_features(VIT) as store:
        np.testing.assert_allclose(
            retriever.image_embedder(store).embed(np.array([11, 3])), arrays["images"][[2, 0]], atol=1e-6
        )
    again = retriever.text_embedder.embed(captions["text"].tolist()[::-1])
    np.testing.assert_allclose(again[::-1], arrays["captions"], atol=1e-6)


def test_captions_of_another_language_are_left_out(tmp_path: Path) -> None:
    data = read_manifest(MANIFEST)
    captions = data.captions.assign(language=["en", "zh"] * 12)
    manifest = rewrite(data, tmp_path / "data", captions=captions)
    arrays = embedded(RESULTS / "retrievers/words", tmp_path / "english.npz", manifest=manifest)
    assert arrays["caption_row"].tolist() == [6, 14, 22]


@pytest.mark.parametrize("kind", ["features", "features_and_words"])
def test_a_retriever_of_text_features(tmp_path: Path, kind: str) -> None:
    """A caption's stored feature and the caption itself come to the same point."""
    folder = train(tmp_path / "bert", settings({**FEATURES, "kind": kind}), text_features=TEXT_FEATURES)
    arrays = embedded(folder, tmp_path / "embeddings.npz", text_features=TEXT_FEATURES)
    retriever = opened(folder, text_encoder=BERT)
    captions = read_manifest(MANIFEST).captions.iloc[arrays["caption_row"]]["text"].tolist()
    np.testing.assert_allclose(retriever.text_embedder.embed(captions), arrays["captions"], atol=1e-5)
    assert retriever.card["text_encoder"]["source"] == "tiny-bert"
    assert retriever.text_embedder.embed([]).shape == (0, 5)


def test_a_retriever_of_word_vectors(tmp_path: Path) -> None:
    """Its captions are the means of word vectors at length 1, stored or new, known to the vocabulary or not."""
    vectors, stored = tmp_path / "vectors.txt", tmp_path / "vectors.json"
    vectors.write_text("a 1 0 0\nman 0 1 0\ncat 0 0 1\nbird 0 0 2\nzebra 0 3 4\n", encoding="utf-8")
    run_stage(
        extract_text,
        tmp_path / "log",
        manifest=MANIFEST,
        stores=str(tmp_path / "stores"),
        sealed=stored,
        settings={"text_encoder": {"source": str(vectors), "output": "word_vectors"}},
    )
    assert "captions have no word with a vector" in (tmp_path / "log").read_text()
    text = {"kind": "features", "encoder": "vectors", "head": "none"}
    devise = settings(text, embedding_dim=3, image={"head": "matrix"})
    folder = train(tmp_path / "devise", devise, text_features=stored)
    arrays = embedded(folder, tmp_path / "embeddings.npz", text_features=stored)
    # "A man.", "The big man.", "A cat.", "The big cat.", "A bird.", "The big bird."
    expected = [
        [0.5**0.5, 0.5**0.5, 0],
        [0, 1, 0],
        [0.5**0.5, 0, 0.5**0.5],
        [0, 0, 1],
        [0.2**0.5, 0, 0.8**0.5],
        [0, 0, 1],
    ]
    np.testing.assert_allclose(arrays["captions"], expected, atol=1e-3)
    retriever = opened(folder, text_encoder=str(vectors))
    np.testing.assert_allclose(retriever.text_embedder.embed(["Zebra!"]), [[0, 0.6, 0.8]], atol=1e-6)
    vectors.write_text("a 1 0 0\n", encoding="utf-8")
    with pytest.raises(UserError, match="not the text encoder"):
        _ = opened(folder, text_encoder=str(vectors)).text_embedder


def test_a_retriever_of_two_views(tmp_path: Path) -> None:
    """It learns from both, and an image is the mean direction of what it makes of each."""
    view = [MIRRORED]
    folder = train(tmp_path / "two", settings(augmented_views=["mirrored"]), augmented_views=view)
    arrays = embedded(folder, tmp_path / "embeddings.npz", augmented_views=view)
    retriever, rows = opened(folder), np.array([3, 7, 11])
    alone = [retriever.image_embedder(open_features(path)).embed(rows) for path in (VIT, MIRRORED)]
    expected = alone[0] + alone[1]
    np.testing.assert_allclose(arrays["images"], expected / np.linalg.norm(expected, axis=1)[:, None], atol=1e-6)
    assert np.abs(arrays["images"] - alone[0]).max() > 0.01
    one = train(tmp_path / "one")
    assert (one / "best.safetensors").read_bytes() != (folder / "best.safetensors").read_bytes()
    card = json.loads((folder / "card.json").read_text())
    assert card["inputs"]["augmented_views"] == [open_features(MIRRORED).fingerprint]
    with pytest.raises(UserError, match="0 are given; give --augmented-views once for each of: mirrored"):
        embedded(folder, tmp_path / "no.npz")
    with pytest.raises(UserError, match="leave out --augmented-views"):
        train(tmp_path / "no", augmented_views=view)
    with pytest.raises(UserError, match="not those of the images of the data set toy"):
        embedded(folder, tmp_path / "no.npz", augmented_views=[TEXT_FEATURES])


def test_word_vectors_start_the_embedding(tmp_path: Path) -> None:
    words = len(json.loads(VOCABULARY.read_text())["words"])
    np.save(tmp_path / "vectors.npy", np.zeros((words, 4), np.float32))
    train(tmp_path / "vectors", word_vectors=tmp_path / "vectors.npy")
    np.save(tmp_path / "wide.npy", np.zeros((words, 3), np.float32))
    with pytest.raises(UserError, match=rf"are {words} x 3, the embedding {words} x 4 .*text\.word_dim"):
        train(tmp_path / "wide", word_vectors=tmp_path / "wide.npy")


def test_inputs_that_do_not_belong_together_are_an_error(tmp_path: Path) -> None:
    folder = train(tmp_path / "words")
    bert = train(tmp_path / "bert", settings(FEATURES), text_features=TEXT_FEATURES)
    with pytest.raises(UserError, match="needs text_features"):
        train(tmp_path / "no", settings(FEATURES))
    with pytest.raises(UserError, match="reads no text features"):
        train(tmp_path / "no", text_features=TEXT_FEATURES)
    with pytest.raises(UserError, match="not those of the captions"):
        train(tmp_path / "no", settings(FEATURES), text_features=VIT)
    with pytest.raises(UserError, match="give text_features"):
        embedded(bert, tmp_path / "no.npz")
    with pytest.raises(UserError, match="the split has no captions in the language"):
        embedded(folder, tmp_path / "no.npz", split="none")
    data = read_manifest(MANIFEST)
    with pytest.raises(UserError, match="not those of the captions"):
        opened(bert).caption_embedder(data, VIT)
    other = json.loads((bert / "card.json").read_text())
    other["text_encoder"]["weights_sha256"] = "another"
    write_card(bert, other)
    with pytest.raises(UserError, match="not the text encoder"):
        _ = opened(bert, text_encoder=BERT).text_embedder
    with pytest.raises(UserError, match="of another text encoder"):
        embedded(bert, tmp_path / "no.npz", text_features=TEXT_FEATURES)
