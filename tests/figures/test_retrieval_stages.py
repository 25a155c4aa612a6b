"""The commands that draw retrieval, from the files that the stages before them leave."""

import json

import numpy as np
import pytest

from vitcapr.artefacts.metrics import write_metrics
from vitcapr.artefacts.ranks import RankFile, Ranks
from vitcapr.cli import draw_embeddings, draw_learning_curve, draw_retrieved, draw_side_by_side
from vitcapr.errors import UserError

SETTINGS = json.dumps({"figures": {"formats": ["png", "svg"], "failures": 2}})


@pytest.fixture
def retrieved(dataset, tmp_path):
    """Options that name the toy's manifest, and random embeddings and ranks of its six test images."""
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(2, 6, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    rows = np.arange(6, dtype=np.int32)
    np.savez(
        tmp_path / "embeddings.npz",
        images=vectors[0],
        captions=vectors[1],
        image_row=rows,
        caption_row=rows,
        caption_image=rows,
    )
    ranks = Ranks(rows // 3 + 1, np.full(6, 2, np.int32), np.full(6, 0.5))
    RankFile(ranks, rows, rows, rows).write(tmp_path / "ranks.npz")
    return ["--embeddings", tmp_path / "embeddings.npz", "--manifest", dataset]


@pytest.fixture
def draw(run, tmp_path):
    """Draw twice; the two must agree to the byte. Returns the names of the files."""

    def call(command, *arguments):
        for folder in ("one", "two"):
            run(command, *arguments, "--output-dir", tmp_path / folder, "--settings", SETTINGS, "--log", tmp_path / "l")
        written = sorted(path.name for path in (tmp_path / "one").iterdir())
        assert all((tmp_path / "one" / n).read_bytes() == (tmp_path / "two" / n).read_bytes() for n in written)
        return written

    return call


def test_embeddings(draw, retrieved):
    names = ["cosines.png", "cosines.svg", "pca.png", "pca.svg", "tsne.png", "tsne.svg"]
    assert draw(draw_embeddings.main, *retrieved) == names


def test_features_of_one_kind_are_a_mistake(run, retrieved, tmp_path):
    with pytest.raises(UserError, match="give both, or none"):
        run(draw_embeddings.main, *retrieved, "--image-features", tmp_path, "--output-dir", tmp_path)


def test_failures(draw, retrieved, tmp_path):
    names = ["image_to_text.png", "image_to_text.svg", "text_to_image.png", "text_to_image.svg"]
    assert draw(draw_retrieved.main, *retrieved, "--ranks", tmp_path / "ranks.npz", "--split", "test") == names
    log = (tmp_path / "l").read_text()
    assert "3 of 6 first matches are wrong" in log
    assert "6 of 6 first matches are wrong" in log


def test_another_split_or_data_set_is_a_mistake(run, retrieved, tmp_path):
    options = [*retrieved, "--ranks", tmp_path / "ranks.npz", "--output-dir", tmp_path]
    with pytest.raises(UserError, match="not embeddings of the split train"):
        run(draw_retrieved.main, *options, "--split", "train")
    content = dict(np.load(tmp_path / "embeddings.npz"))
    np.savez(tmp_path / "embeddings.npz", **{**content, "caption_row": content["caption_row"] + 1})
    with pytest.raises(UserError, match="embeddings of another data set"):
        run(draw_retrieved.main, *options, "--split", "test")


def test_retrievers_side_by_side(draw, run, retrieved, tmp_path):
    _, embeddings, *manifest = retrieved
    options = ["--embeddings", f"a={embeddings}", "--embeddings", f"b={embeddings}", *manifest]
    names = [f"{name}.{suffix}" for name in ("spaces", "top_captions", "top_images") for suffix in ("png", "svg")]
    assert draw(draw_side_by_side.main, *options, "--split", "test") == ["found.md", *names]
    found = (tmp_path / "one" / "found.md").read_text(encoding="utf-8")
    assert found.count("\n| a | ") == found.count("\n| b | ") == 10
    assert found.count("✓") + found.count("✗") == 20
    with pytest.raises(UserError, match="not embeddings of the split train"):
        run(draw_side_by_side.main, *options, "--split", "train", "--output-dir", tmp_path)


def test_a_learning_curve_from_cards_and_scores(draw, run, dataset, tmp_path):
    trained = []
    for number, pairs in enumerate((100, 100, None)):
        card, metrics = tmp_path / f"card{number}.json", tmp_path / f"metrics{number}.json"
        card.write_text(
            json.dumps({"format": "vitcapr-model-1", "settings": {"retriever": {"training": {"pairs": pairs}}}})
        )
        score = {"value": 0.1 + 0.1 * number, "low": None, "high": None, "n": 6}
        scores = {f"{way}_recall_1": score for way in ("i2t", "t2i")}
        content = {"dataset": "toy", "split": "test", "model": "m", "decoding": "", "metrics": scores, "protocol": ""}
        write_metrics(metrics, **content)
        trained += ["--trained", f"mlp={card}={metrics}"]
    assert draw(draw_learning_curve.main, *trained, "--manifest", dataset) == [
        "learning_curve.png", "learning_curve.svg",
    ]  # fmt: skip
    assert "3 trainings of 1 systems" in (tmp_path / "l").read_text()
    for wrong, message in (("mlp=x", "not of the form"), (f"mlp={metrics}={metrics}", "not the card")):
        with pytest.raises(UserError, match=message):
            run(draw_learning_curve.main, "--trained", wrong, "--manifest", dataset, "--output-dir", tmp_path)
