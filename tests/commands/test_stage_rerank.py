"""tune_reranking, rerank and rerank_oracle on five pictures and a retriever that knows the answers."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from tests.commands.stores import write_store
from tests.data_sets import candidate, write_data_set
from vitcapr.errors import UserError
from vitcapr.formats.captions import write_captions
from vitcapr.metrics import java
from vitcapr.metrics.captions.cider import cider
from vitcapr.pipeline.run import run_stage
from vitcapr.retrieval import reranking
from vitcapr.stages.rerank import rerank
from vitcapr.stages.rerank_oracle import rerank_oracle
from vitcapr.stages.tune_reranking import tune_reranking

SPLITS = {"v0": "validation", "v1": "validation", "v2": "validation", "t0": "test", "t1": "test"}
TRUTH = {
    name: f"the {color} dog runs far"
    for name, color in zip(SPLITS, ("red", "blue", "tan", "gray", "pink"), strict=True)
}
WRONG = "a cat sleeps all day"


def captions_of(split):
    """The wrong caption is the likelier one; t1 has a right one only."""
    for name in (name for name, of in SPLITS.items() if of == split):
        wrong = [] if name == "t1" else [candidate(WRONG, -0.1)]
        yield name, [*wrong, candidate(TRUTH[name], -0.6)]


class Texts:
    """The first axis is that of a wrong caption; each picture has an axis of its own."""

    def embed(self, captions, advance):  # noqa: ARG002
        axes = np.eye(len(TRUTH) + 1, dtype=np.float32)
        return axes[[0 if caption == WRONG else 1 + list(TRUTH.values()).index(caption) for caption in captions]]


class Images:
    def embed(self, rows, advance):  # noqa: ARG002
        return np.eye(len(TRUTH) + 1, dtype=np.float32)[1 + rows]


def store(folder, ids):
    """Features of these images, which the retriever here does not look at."""
    return write_store(folder, {"cls": np.ones((len(ids), 2), np.float16)}, ids)


@pytest.fixture
def files(tmp_path, monkeypatch):
    write_data_set(tmp_path, SPLITS, [(name, "en", text) for name, text in TRUTH.items()])
    for split in ("validation", "test"):
        write_captions(tmp_path / f"{split}.json", captions_of(split))
    (tmp_path / "best.safetensors").write_bytes(b"weights")
    retriever = SimpleNamespace(
        text_embedder=Texts(), image_embedder=lambda _: Images(), augmented_views=[], layer=None
    )
    monkeypatch.setattr(reranking, "open_retriever", lambda *_, **__: retriever)
    monkeypatch.setattr(java, "tokenize", lambda captions: [caption.text for caption in captions])
    common = {"features": store(tmp_path, list(SPLITS)), "manifest": tmp_path / "manifest.json"}
    return common | {"vocabulary": tmp_path / "vocabulary.json", "retriever": tmp_path}


def tune(files, folder, settings={"weighing": {"length_penalty": 1.0}}):  # noqa: B006
    run_stage(
        tune_reranking,
        captions=folder / "validation.json",
        **files,
        weight=folder / "weight.json",
        settings=settings,
        log=folder / "log",
    )
    return json.loads((folder / "weight.json").read_text())


def test_the_weight_is_the_smallest_that_puts_the_truth_first(files, tmp_path):
    """Means of log-probabilities are -0.1 and -0.6, cosines 0 and 1: the truth is ahead above w = 1/3."""
    found = tune(files, tmp_path)
    assert found["weight"] == 0.35
    assert len(found["curve"]) == 21
    assert found["curve"][6] == {"weight": 0.3, "cider": found["decoded"], "changed": 0.0}
    truth = list(TRUTH.values())[:3]
    best = cider(truth, [[text] for text in truth]).value
    assert found["curve"][7] == {"weight": 0.35, "cider": round(best, 6), "changed": 1.0}
    assert found["decoded"] == round(cider([WRONG] * 3, [[text] for text in truth]).value, 6)
    assert found["protocol"] == "tok:ptb|images:3|split:validation|candidates:6|tuned on:validation"
    # -3.6 and -0.6 over the root of 6 lie 1.2 apart: a cosine of 1 against 0 outweighs that above w = 0.55.
    coarse = tune(files, tmp_path, {"weighing": {"grid_steps": 2, "length_penalty": 0.5}})
    assert (coarse["weight"], coarse["length_penalty"], len(coarse["curve"])) == (1.0, 0.5, 3)


def reranked(files, folder, **changes):
    options = files | {"candidates": folder / "test.json", "split": "test"} | changes
    written = {"captions": folder / "reranked.json", "log": folder / "log"}
    run_stage(rerank, weight=folder / "weight.json", **options, **written)
    return json.loads((folder / "reranked.json").read_text())


def test_rerank_reorders_the_candidates(files, tmp_path):
    tune(files, tmp_path)
    first, second = reranked(files, tmp_path)
    assert (first["image_id"], first["caption"]) == ("t0", TRUTH["t0"])
    assert [c["caption"] for c in first["candidates"]] == [TRUTH["t0"], WRONG]
    assert [c["cosine"] for c in first["candidates"]] == [1, 0]
    assert [c["score"] for c in first["candidates"]] == pytest.approx([0.65 * -0.6 + 0.35, 0.65 * -0.1])
    assert first["token_log_probs"] == [-0.6] * 6
    assert second["caption"] == TRUTH["t1"]
    assert "weight 0.35, another caption for 1 of 2 images" in (tmp_path / "log").read_text()
    once = (tmp_path / "reranked.json").read_bytes()
    reranked(files, tmp_path)
    assert (tmp_path / "reranked.json").read_bytes() == once


def test_a_language_model_without_an_image_divides_out_what_is_likely_anyway(files, tmp_path, monkeypatch):
    """The wrong caption has -0.1 a word and the truth -0.6; blind -0.3 and -1.2: alpha above 5/9 turns them round."""

    def judge(captions):
        return np.array([-1.8 if caption == WRONG else -7.2 for caption in captions])

    monkeypatch.setattr(reranking, "load_judge", lambda *_: judge)
    judged = {"language_model": {"source": "tiny"}}
    found = tune(files, tmp_path, {"weighing": {"length_penalty": 1.0, "grid_steps": 1, **judged}})
    assert (found["weight"], found["alpha"]) == (1.0, 0.0)  # The cosine alone needs no alpha; of equals the smallest.
    assert [(point["alpha"], point["changed"]) for point in found["curve"] if point["weight"] == 0] == [
        *((0.0, 0.0), (0.25, 0.0), (0.5, 0.0), (0.75, 1.0), (1.0, 1.0))
    ]
    first, _ = reranked(files, tmp_path)
    assert [c["blind"] for c in first["candidates"]] == [-7.2, -1.8]


def test_a_fixed_weight_of_one_orders_by_the_cosine_alone(files, tmp_path):
    """ViTCap-R, IV-A.2. Nothing is tuned, so there is no file of a weight."""
    options = files | {"candidates": tmp_path / "test.json", "split": "test", "log": tmp_path / "log"}
    run_stage(rerank, **options, settings={"weight": 1.0}, captions=tmp_path / "reranked.json")
    first, _ = json.loads((tmp_path / "reranked.json").read_text())
    assert [(c["caption"], c["score"]) for c in first["candidates"]] == [(TRUTH["t0"], 1.0), (WRONG, 0.0)]
    for settings, weight in (({}, None), ({"weight": 1.0}, tmp_path / "weight.json")):
        with pytest.raises(UserError, match="either a fixed weight or a file"):
            run_stage(rerank, **options, settings=settings, weight=weight, captions=tmp_path / "again.json")


def test_the_oracle_marks_what_it_chose(files, tmp_path):
    options = {"candidates": tmp_path / "test.json", "manifest": files["manifest"], "split": "test"}
    run_stage(rerank_oracle, **options, captions=tmp_path / "oracle.json", log=tmp_path / "log")
    first, second = json.loads((tmp_path / "oracle.json").read_text())
    assert first["oracle"] == second["oracle"] == "sentence CIDEr against the references of the same image"
    assert first["caption"] == TRUTH["t0"]
    references = [[TRUTH["t0"]], [TRUTH["t1"]]]
    ciders = [float(cider([text, TRUTH["t1"]], references).per_image[0]) for text in (TRUTH["t0"], WRONG)]
    assert [c["score"] for c in first["candidates"]] == pytest.approx(ciders, abs=1e-6)
    assert "a ceiling, no result" in (tmp_path / "log").read_text()


def test_mistakes_are_errors(files, tmp_path):
    tune(files, tmp_path)
    with pytest.raises(UserError, match="not the captions of the split"):
        reranked(files, tmp_path, candidates=tmp_path / "validation.json")
    with pytest.raises(UserError, match="no trained retriever there"):
        reranked(files, tmp_path, retriever=tmp_path / "elsewhere")
    with pytest.raises(UserError, match="not those of the images of the data set toys"):
        reranked(files, tmp_path, features=store(tmp_path / "other", ["x"]))
    with pytest.raises(UserError, match="uses 0 augmented views of an image, but 1 are given"):
        reranked(files, tmp_path, augmented_views=[files["features"]])
    (tmp_path / "best.safetensors").write_bytes(b"others")
    with pytest.raises(UserError, match=r"weight in .*weight\.json was chosen for another retriever"):
        reranked(files, tmp_path)
