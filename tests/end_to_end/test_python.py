"""The functions of Python write the same bytes as the jobs of the workflow."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import vitcapr

pytestmark = pytest.mark.timeout(1800)


def same(made: Path, expected: Path, *files: str) -> None:
    for file in files:
        assert (made / file).read_bytes() == (expected / file).read_bytes(), file


def differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def test_from_data_to_recall(toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(toys)
    towers, tiny = Path("results/towers"), Path("results/tiny")
    text = vitcapr.build_vocabulary(towers / "data", tmp_path / "text", vocabulary={"min_count": 1})
    same(text, towers / "text", "vocabulary.json", "tokens.npz")

    cut = {"chunk": 16, "batch": 16, "device": "cpu"}
    monkeypatch.setenv("VITCAPR_BACKBONES", str(toys / tiny / "backbones"))
    features = vitcapr.extract(tiny / "data", "trained", tmp_path / "features/vit", **cut)
    monkeypatch.delenv("VITCAPR_BACKBONES")
    sealed, expected = (
        json.loads((folder / "manifest.json").read_text()) for folder in (features, tiny / "features/vit")
    )
    assert sealed["arrays"] == expected["arrays"]
    assert differing(sealed["attributes"], expected["attributes"]) == {"terms"}
    encoded = vitcapr.extract_text(towers / "data", "bert", tmp_path / "text_features/bert", max_length=16)
    assert (
        vitcapr.open_features(encoded).fingerprint == vitcapr.open_features(towers / "text_features/bert").fingerprint
    )

    made, name = tmp_path / "retrievers/mine", "mlp-pairs40-seed0"
    card = json.loads((towers / "retrievers" / name / "card.json").read_text())["settings"]
    settings = {
        key: value for key, value in card["retriever"].items() if key not in ("backbone", "augmented_views", "seed")
    }
    files = {"text_features": towers / "text_features/bert", "seed": card["seed"]}
    vitcapr.train_retriever(towers / "data", towers / "features/adopted", text, made, **files, **settings)
    same(made, towers / "retrievers" / name, "best.safetensors", "card.json", "history.csv", "sweep.csv")
    retriever = vitcapr.load_retriever(
        made,
        vocabulary=text / "vocabulary.json",
        features=towers / "features/adopted",
        manifest=towers / "data/manifest.json",
        text_features=towers / "text_features/bert/manifest.json",
    )
    embedded = vitcapr.embed(retriever, "test", tmp_path / "test.npz")
    assert embedded.read_bytes() == (towers / f"embeddings/{name}/test/embeddings.npz").read_bytes()
    scores = json.loads((towers / f"metrics/retrieval/{name}/test/metrics.json").read_text())["metrics"]
    found = vitcapr.evaluate_retrieval(embedded, samples=50).scores.set_index("metric")
    assert found["value"].to_dict() == {metric: score["value"] for metric, score in scores.items()}


def test_from_features_to_captions(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    tiny = Path("results/tiny")
    settings = yaml.safe_load(Path("tiny.yaml").read_text())["captioners"]["cross_entropy"]
    glove = tiny / "text/word_vectors" / settings.pop("word_vectors")
    made = tmp_path / "captioners/cross_entropy"
    del settings["backbone"]
    files = (tiny / "data", tiny / "features/vit", tiny / "text")
    vitcapr.train_captioner(*files, made, word_vectors=glove, **settings)
    same(made, tiny / "captioners/cross_entropy", "best.safetensors", "card.json", "history.csv")
    captioner = vitcapr.load_captioner(tiny / "captioners/attention", decoding="beam")
    captions = vitcapr.decode(captioner, "test", tmp_path / "captions.json")
    same(captions.parent, tiny / "captions/attention/beam/test", "captions.json")
