"""The functions of Python write the same bytes as the jobs of the workflow."""

import json
from pathlib import Path
from typing import Any

import pytest

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
    data = {"manifest": towers / "data", "vocabulary": tmp_path / "text/vocabulary.json"}
    tokens = tmp_path / "text/tokens.npz"
    vitcapr.run("vocabulary", {"text": {"vocabulary": {"min_count": 1}}}, **data, tokens=tokens)
    same(tmp_path / "text", towers / "text", "vocabulary.json", "tokens.npz")

    cut = {"chunk": 16, "batch": 16, "device": "cpu"}
    monkeypatch.setenv("VITCAPR_BACKBONES", str(toys / tiny / "backbones"))
    features = vitcapr.extract(tiny / "data", "trained", tmp_path / "features/vit", **cut)
    monkeypatch.delenv("VITCAPR_BACKBONES")
    sealed, expected = (
        json.loads((folder / "manifest.json").read_text()) for folder in (features, tiny / "features/vit")
    )
    assert sealed["arrays"] == expected["arrays"]
    assert differing(sealed["attributes"], expected["attributes"]) == {"terms"}
    bert = {"text_encoder": {"source": "bert", "max_length": 16}}
    encoded = tmp_path / "text_features/bert/manifest.json"
    vitcapr.run("extract_text", bert, manifest=towers / "data", sealed=encoded, stores=str(tmp_path / "stores"))
    assert (
        vitcapr.open_features(encoded).fingerprint == vitcapr.open_features(towers / "text_features/bert").fingerprint
    )

    made, name = tmp_path / "retrievers/mine", "mlp-pairs40-seed0"
    settings = json.loads((towers / "retrievers" / name / "card.json").read_text())["settings"]
    files = {**data, "features": towers / "features/adopted", "text_features": towers / "text_features/bert"}
    vitcapr.run("train_retriever", settings, **files, tokens=tokens, retriever=made)
    same(made, towers / "retrievers" / name, "best.safetensors", "card.json", "history.csv", "sweep.csv")
    embedded = tmp_path / "test.npz"
    vitcapr.run("embed", **files, retriever=made, split="test", embeddings=embedded)
    assert embedded.read_bytes() == (towers / f"embeddings/{name}/test/embeddings.npz").read_bytes()
    scores = json.loads((towers / f"metrics/retrieval/{name}/test/metrics.json").read_text())["metrics"]
    found = vitcapr.evaluate_retrieval(embedded, samples=50).scores.set_index("metric")
    assert found["value"].to_dict() == {metric: score["value"] for metric, score in scores.items()}
