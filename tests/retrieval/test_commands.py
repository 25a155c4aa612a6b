"""``train_retriever`` and ``embed`` as a user runs them, and the retriever opened from its folder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.model import write_card
from vitcapr.pipeline.run import run_stage
from vitcapr.retrieval.embedder import Retriever, open_retriever
from vitcapr.stages.embed import embed
from vitcapr.stages.extract_text import extract_text
from vitcapr.stages.train_retriever import train_retriever
from vitcapr.store.reader import open_features

FEATURES = {"kind": "features", "encoder": "bert"}


def train(files: Any, folder: Path, settings: str | None = None, **options: Any) -> Path:
    tokens, chosen = files.root / "tokens.npz", settings or files.settings()
    run_stage(train_retriever, **files.inputs, tokens=tokens, retriever=folder, settings=chosen, **options)
    return folder


def embedded(files: Any, retriever: Path, output: Path, split: str = "test", **options: Any) -> dict[str, np.ndarray]:
    settings = '{"embed": {"batch": 2}}'
    run_stage(
        embed,
        **files.inputs,
        retriever=retriever,
        split=split,
        embeddings=output,
        settings=settings,
        **options,
    )
    with np.load(output) as stored:
        return dict(stored)


def opened(files: Any, folder: Path, **options: Any) -> Retriever:
    vocabulary = files.inputs["vocabulary"]
    return open_retriever(folder, vocabulary=vocabulary, device=torch.device("cpu"), **options)


def test_a_retriever_of_words(files: Any, tmp_path: Path) -> None:
    folder = train(files, tmp_path / "words", log=tmp_path / "log")
    assert {path.name for path in folder.iterdir()} == {
        *("best.safetensors", "card.json", "history.csv", "sweep.csv", "gpu.csv", "checkpoint"),
    }
    card = json.loads((folder / "card.json").read_text())
    assert card["text_encoder"] is None
    assert card["architecture"]["image"]["feature_dim"] == 6
    history = (folder / "history.csv").read_text().splitlines()
    assert len(history) == 3
    assert history[0].startswith("epoch,phase,train_loss,validation_loss,validation_rsum,")

    found = embedded(files, folder, tmp_path / "out" / "embeddings.npz", log=tmp_path / "log")
    data = read_manifest(files.inputs["manifest"])
    assert found["image_row"].tolist() == [3, 7, 11]
    captions = data.captions.iloc[found["caption_row"]]
    assert captions["language"].tolist() == ["en"] * 6
    assert captions["image_id"].tolist() == [name for name in ("image3", "image7", "image11") for _ in range(2)]
    assert found["caption_image"].tolist() == [0, 0, 1, 1, 2, 2]
    assert {name: array.dtype.name for name, array in found.items()} == {
        "images": "float32",
        "captions": "float32",
        "image_row": "int32",
        "caption_row": "int32",
        "caption_image": "int32",
    }
    assert found["images"].shape == (3, 5)
    for name in ("images", "captions"):
        np.testing.assert_allclose(np.linalg.norm(found[name], axis=1), 1, atol=1e-6)
    retriever = opened(files, folder)
    with open_features(files.inputs["features"]) as store:
        np.testing.assert_allclose(
            retriever.image_embedder(store).embed(np.array([11, 3])), found["images"][[2, 0]], atol=1e-6
        )
    again = retriever.text_embedder.embed(captions["text"].tolist()[::-1])
    np.testing.assert_allclose(again[::-1], found["captions"], atol=1e-6)


@pytest.mark.parametrize("kind", ["features", "features_and_words"])
def test_a_retriever_of_text_features(files: Any, tmp_path: Path, kind: str) -> None:
    """A caption's stored feature and the caption itself come to the same point."""
    settings = files.settings({**FEATURES, "kind": kind})
    folder = train(files, tmp_path / "bert", settings, text_features=files.text_features)
    found = embedded(files, folder, tmp_path / "embeddings.npz", text_features=files.text_features)
    retriever = opened(files, folder, text_encoder=str(files.bert))
    captions = read_manifest(files.inputs["manifest"]).captions.iloc[found["caption_row"]]["text"].tolist()
    np.testing.assert_allclose(retriever.text_embedder.embed(captions), found["captions"], atol=1e-5)
    assert retriever.card["text_encoder"]["source"] == "tiny-bert"
    assert retriever.text_embedder.embed([]).shape == (0, 5)


def test_a_retriever_of_word_vectors(files: Any, tmp_path: Path) -> None:
    """Its captions are the means of word vectors at length 1, stored or new, known to the vocabulary or not."""
    vectors, stored = tmp_path / "vectors.txt", tmp_path / "vectors.json"
    vectors.write_text("a 1 0 0\nman 0 1 0\ncar 0 0 1\nhouse 0 0 2\nzebra 0 3 4\n", encoding="utf-8")
    run_stage(
        extract_text,
        tmp_path / "log",
        manifest=files.inputs["manifest"],
        stores=tmp_path / "stores",
        sealed=stored,
        settings=json.dumps({"text_encoder": {"source": str(vectors), "output": "word_vectors"}}),
    )
    assert "captions have no word with a vector" in (tmp_path / "log").read_text()
    settings = json.loads(files.settings({"kind": "features", "encoder": "vectors", "head": "none"}))
    settings["retriever"] |= {"embedding_dim": 3, "image": {"head": "matrix"}}
    folder = train(files, tmp_path / "devise", json.dumps(settings), text_features=stored)
    found = embedded(files, folder, tmp_path / "embeddings.npz", text_features=stored)
    # "A man.", "The big man.", "A car.", "The big car.", "A house.", "The big house."
    expected = [
        [0.5**0.5, 0.5**0.5, 0],
        [0, 1, 0],
        [0.5**0.5, 0, 0.5**0.5],
        [0, 0, 1],
        [0.2**0.5, 0, 0.8**0.5],
        [0, 0, 1],
    ]
    np.testing.assert_allclose(found["captions"], expected, atol=1e-3)
    retriever = opened(files, folder, text_encoder=str(vectors))
    np.testing.assert_allclose(retriever.text_embedder.embed(["Zebra!"]), [[0, 0.6, 0.8]], atol=1e-6)
    vectors.write_text("a 1 0 0\n", encoding="utf-8")
    with pytest.raises(UserError, match="not the text encoder"):
        _ = opened(files, folder, text_encoder=str(vectors)).text_embedder


def test_a_retriever_of_two_views(files: Any, tmp_path: Path) -> None:
    """It learns from both, and an image is the mean direction of what it makes of each."""
    settings, view = files.settings(augmented_views=["mirrored"]), [files.mirrored]
    folder = train(files, tmp_path / "two", settings, augmented_views=view)
    found = embedded(files, folder, tmp_path / "embeddings.npz", augmented_views=view)
    retriever, rows = opened(files, folder), np.array([3, 7, 11])
    alone = [
        retriever.image_embedder(open_features(path)).embed(rows) for path in (files.inputs["features"], files.mirrored)
    ]
    expected = alone[0] + alone[1]
    np.testing.assert_allclose(found["images"], expected / np.linalg.norm(expected, axis=1)[:, None], atol=1e-6)
    assert np.abs(found["images"] - alone[0]).max() > 0.01
    one = train(files, tmp_path / "one")
    assert (one / "best.safetensors").read_bytes() != (folder / "best.safetensors").read_bytes()
    card = json.loads((folder / "card.json").read_text())
    assert card["inputs"]["augmented_views"] == ["d" * 64]
    with pytest.raises(UserError, match="0 are given; give --augmented-views once for each of: mirrored"):
        embedded(files, folder, tmp_path / "no.npz")
    with pytest.raises(UserError, match="leave out --augmented-views"):
        train(files, tmp_path / "no", augmented_views=view)
    with pytest.raises(UserError, match="not those of the images of the data set toy"):
        embedded(files, folder, tmp_path / "no.npz", augmented_views=[files.text_features])


def test_word_vectors_start_the_embedding(files: Any, tmp_path: Path) -> None:
    words = len(json.loads(files.inputs["vocabulary"].read_text())["words"])
    np.save(tmp_path / "vectors.npy", np.zeros((words, 4), np.float32))
    train(files, tmp_path / "vectors", word_vectors=tmp_path / "vectors.npy")
    np.save(tmp_path / "wide.npy", np.zeros((words, 3), np.float32))
    with pytest.raises(UserError, match=r"text\.word_dim"):
        train(files, tmp_path / "wide", word_vectors=tmp_path / "wide.npy")


def test_inputs_that_do_not_belong_together_are_an_error(files: Any, tmp_path: Path) -> None:
    folder = train(files, tmp_path / "words")
    bert = train(files, tmp_path / "bert", files.settings(FEATURES), text_features=files.text_features)
    with pytest.raises(UserError, match="needs --text-features"):
        train(files, tmp_path / "no", files.settings(FEATURES))
    with pytest.raises(UserError, match="reads no text features"):
        train(files, tmp_path / "no", text_features=files.text_features)
    with pytest.raises(UserError, match="not those of the captions"):
        train(files, tmp_path / "no", files.settings(FEATURES), text_features=files.inputs["features"])
    with pytest.raises(UserError, match="give --text-features"):
        embedded(files, bert, tmp_path / "no.npz")
    with pytest.raises(UserError, match="the split has no images or no captions"):
        embedded(files, folder, tmp_path / "no.npz", split="none")
    data = read_manifest(files.inputs["manifest"])
    with pytest.raises(UserError, match="not those of the captions"):
        opened(files, bert).caption_embedder(data, files.inputs["features"])
    other = json.loads((bert / "card.json").read_text())
    other["text_encoder"]["weights_sha256"] = "another"
    write_card(bert, other)
    with pytest.raises(UserError, match="not the text encoder"):
        _ = opened(files, bert, text_encoder=str(files.bert)).text_embedder
    with pytest.raises(UserError, match="of another text encoder"):
        embedded(files, bert, tmp_path / "no.npz", text_features=files.text_features)
