"""A cross-attention reranker from training to its scores, as the rules call its stages."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vitcapr.cli import cross_encode, score_cross_encoder, score_retrieval, train_cross_encoder, weigh_cross_encoder
from vitcapr.data.manifest import read_manifest
from vitcapr.errors import UserError
from vitcapr.files import read_json

SETTINGS = {
    "cross_encoder": {
        "retriever": "r",
        "width": 8,
        "heads": 2,
        "training": {
            "phases": [{"epochs": 2, "groups": 2, "group_images": 2}], "neighbours": 2, "precision": "float32",
        },
    }
}  # fmt: skip


def write_embeddings(files: Any, folder: Path, split: str) -> Path:
    """Random ones: what a retriever that has learnt nothing would give."""
    data = read_manifest(files.inputs["manifest"])
    rows, captions = data.rows(split), data.captions_of(split, "en")
    draw = np.random.default_rng(len(split))
    vectors = [draw.normal(size=(count, 5)).astype(np.float32) for count in (len(rows), len(captions))]
    path = folder / split / "embeddings.npz"
    path.parent.mkdir(parents=True)
    images, texts = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in vectors)
    np.savez(
        path,
        images=images,
        captions=texts,
        image_row=rows.astype(np.int32),
        caption_row=captions["caption_row"].to_numpy().astype(np.int32),
        caption_image=np.searchsorted(rows, captions["image_row"]).astype(np.int32),
    )
    return path


@pytest.mark.parametrize("with_features", [False, True])
def test_from_training_to_scores(files: Any, tmp_path: Path, with_features: bool) -> None:
    embedded = {split: write_embeddings(files, tmp_path, split) for split in ("train", "validation", "test")}
    tokens, manifest = files.root / "tokens.npz", files.inputs["manifest"]
    features = {"features": files.inputs["features"], "manifest": manifest, "tokens": tokens}
    if with_features:
        features["text_features"] = files.text_features
    folder = tmp_path / "cross"
    train_cross_encoder.main(
        json.dumps(SETTINGS),
        vocabulary=files.inputs["vocabulary"],
        train=embedded["train"],
        validation=embedded["validation"],
        output_dir=folder,
        log=tmp_path / "log",
        **features,
    )
    assert read_json(folder / "card.json")["architecture"]["text_dim"] == (8 if with_features else None)
    assert (folder / "history.csv").read_text().startswith("epoch,phase,train_loss,validation_loss,validation_accuracy")

    for split in ("validation", "test"):
        cross_encode.main(
            embeddings=embedded[split],
            cross_encoder=folder,
            split=split,
            output=tmp_path / split / "matches.npz",
            settings='{"top": 4, "batch": 3}',
            log=tmp_path / "log",
            **features,
        )
        score_retrieval.main(
            embedded[split],
            manifest,
            split,
            tmp_path / split / "metrics.json",
            tmp_path / split / "ranks.npz",
            model="r",
        )
    weigh_cross_encoder.main(
        tmp_path / "validation" / "matches.npz", tmp_path / "validation" / "ranks.npz", folder / "weight.json",
        '{"grid_steps": 4}', tmp_path / "log",
    )  # fmt: skip
    weight = read_json(folder / "weight.json")
    assert [row["weight"] for row in weight["curve"]] == [0, 0.25, 0.5, 0.75, 1]
    assert max(weight["curve"], key=lambda row: row["rsum"])["weight"] == weight["weight"]

    test, after = tmp_path / "test", tmp_path / "after"
    score_cross_encoder.main(
        test / "matches.npz", test / "ranks.npz", test / "metrics.json", folder / "weight.json",
        after / "metrics.json", after / "ranks.npz", "crossed", log=tmp_path / "log",
    )  # fmt: skip
    content = read_json(after / "metrics.json")
    assert content["model"] == "crossed"
    assert content["protocol"].endswith(f"|rerank:top4 of r,weight={weight['weight']:g} chosen on validation")
    assert content["metrics"]["i2t_recall_10"]["value"] == 1
    assert "rsum" in (tmp_path / "log").read_text()

    other = {**features, "tokens": files.inputs["vocabulary"]}
    with pytest.raises(UserError):
        cross_encode.main(
            embeddings=embedded["test"], cross_encoder=folder, split="test", output=tmp_path / "x.npz", **other
        )


def test_too_few_images_for_so_many_neighbours(files: Any, tmp_path: Path) -> None:
    many = json.loads(json.dumps(SETTINGS))
    many["cross_encoder"]["training"]["neighbours"] = 50
    embedded = {split: write_embeddings(files, tmp_path, split) for split in ("train", "validation")}
    with pytest.raises(UserError, match="50 neighbours of each image, but the split 'train' has 6 images"):
        train_cross_encoder.main(
            json.dumps(many),
            features=files.inputs["features"],
            manifest=files.inputs["manifest"],
            tokens=files.root / "tokens.npz",
            vocabulary=files.inputs["vocabulary"],
            output_dir=tmp_path / "cross",
            **embedded,
        )
