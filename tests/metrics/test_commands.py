"""The stages score and summary, and the command table, on a data set of three pictures."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from tests.data_sets import write_data_set, write_texts
from vitcapr.commands import table
from vitcapr.errors import UserError
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.score import score
from vitcapr.stages.summary import summary

SETTINGS = {"metrics": {"caption": ["bleu", "rouge_l", "cider", "diversity"], "bootstrap_samples": 50}}
TEXTS = {
    "train.png": ["A dog runs.", "a cat sits"],
    "one.png": ["A dog!", "the dog (a brown one)"],
    "two.png": ["Two cats sit together.", "cats", "a pair of cats"],
}
WRITTEN = {"one.png": "a dog runs", "two.png": "cats and a dog"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    splits = {image: "train" if image == "train.png" else "test" for image in TEXTS}
    captions = [(image, "en", text) for image, texts in TEXTS.items() for text in texts]
    write_data_set(tmp_path, splits, captions)
    Vocabulary.build(["a", "dog", "cats"], min_count=1).write(tmp_path / "vocabulary.json")
    write_texts(tmp_path / "captions.json", WRITTEN)
    return tmp_path


def run_score(folder: Path, output: str = "metrics.json", **values: object) -> dict[str, dict[str, float]]:
    """The scores of captions.json."""
    files = {name: folder / f"{name}.json" for name in ("captions", "manifest", "vocabulary")}
    files |= {"metrics": folder / output, "per_image": folder / "per_image.parquet"}
    given = {"split": "test", "model": "attention", "decoding": "beam", "settings": SETTINGS, **values}
    run_stage(score, **files, **given)
    return json.loads((folder / output).read_text())["metrics"]


def test_score(folder: Path) -> None:
    metrics = run_score(folder)
    # 'a', 'dog' of the first, 'cats', 'a' of the second: four of seven words; lengths 3 + 4 against 2 + 4.
    assert metrics["bleu_1"]["value"] == pytest.approx(4 / 7)
    assert metrics["novel_share"]["value"] == 0.5
    assert metrics["vocabulary_used"] == {"value": 5, "low": None, "high": None, "n": 2}
    content = json.loads((folder / "metrics.json").read_text())
    assert content["protocol"] == (
        "tok:ptb|refs:2-3|images:2|split:test|lang:en|bleu:corpus,closest|rouge_l:beta=1.2|cider:d,idf=refs"
        "|ci:95,samples=50,seed=0|vocab:train,>=1,7"
    )
    assert (content["dataset"], content["model"], content["decoding"]) == ("toys", "attention", "beam")
    per_image = pd.read_parquet(folder / "per_image.parquet")
    assert per_image["image_id"].tolist() == ["one.png", "two.png"]
    assert per_image["bleu_1"].tolist() == pytest.approx([2 / 3, 2 / 4])
    # Unigram matches, and n-grams of orders 1 to 4, which a comparison with another system needs.
    assert [row[[0, 4, 5, 6, 7]].tolist() for row in per_image["bleu_statistics"]] == [[2, 3, 2, 1, 0], [2, 4, 3, 2, 1]]


def test_captions_of_a_sample_are_scored(folder: Path) -> None:
    """A sample as large as the split is the split."""
    values = SETTINGS["metrics"]
    sampled = {"metrics": {**values, "sampled_images": {"test": 1, "validation": 7}}}
    metrics = run_score(folder, settings=sampled)
    assert metrics["bleu_1"]["value"] == pytest.approx(2 / 3)
    assert metrics["bleu_1"]["n"] == 1
    assert "|images:1|" in (protocol := json.loads((folder / "metrics.json").read_text())["protocol"])
    assert "|sample:1/2,seed=0|vocab:" in protocol
    assert pd.read_parquet(folder / "per_image.parquet")["image_id"].tolist() == ["one.png"]
    whole = {"metrics": {**values, "sampled_images": {"test": 2}}}
    assert run_score(folder, settings=whole) == run_score(folder)


def test_scores_are_the_same_bytes_in_any_order_of_the_captions(folder: Path) -> None:
    run_score(folder, output="first.json")
    write_texts(folder / "captions.json", dict(reversed(WRITTEN.items())))
    run_score(folder, output="second.json")
    assert (folder / "first.json").read_bytes() == (folder / "second.json").read_bytes()


def test_captions_of_an_oracle_are_scored_under_its_name_only(folder: Path) -> None:
    entries = [{"image_id": i, "caption": text, "oracle": "why"} for i, text in WRITTEN.items()]
    (folder / "captions.json").write_text(json.dumps(entries))
    with pytest.raises(UserError, match=r"chosen with the references, and 'beam' does not say so.*'oracle'"):
        run_score(folder)
    run_score(folder, decoding="cider-oracle")
    protocol = json.loads((folder / "metrics.json").read_text())["protocol"]
    assert protocol.startswith("ORACLE, NOT A RESULT:chosen by cider against the references that score it|tok:ptb|")


def test_summary_and_table(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run_score(folder)
    results = folder / "results"
    for experiment in ("demo", "other"):
        home = results / experiment
        written = {"summary": home / "summary.csv", "table": [home / "scores.md", home / "scores.html"]}
        run_stage(summary, metrics=[folder / "metrics.json"], experiment=experiment, **written)
    collected = pd.read_csv(results / "summary.csv")
    assert sorted(collected["experiment"].unique()) == ["demo", "other"]
    assert "57.1" in (results / "demo" / "scores.md").read_text()
    assert '<td style="text-align:right">57.1' in (results / "demo" / "scores.html").read_text()

    none = results / "alignments"
    run_stage(summary, experiment="alignments", summary=none / "summary.csv", table=[none / "scores.md"])
    assert pd.read_csv(none / "summary.csv").empty
    assert (none / "scores.md").read_text() == "No scores.\n"
    assert len(pd.read_csv(results / "summary.csv")) == len(collected)

    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "80")
    table.main(results / "summary.csv")
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 80 + len(os.fspath(results))
    assert any(line.split()[:3] == ["attention,", "beam", "57.1"] for line in printed)
