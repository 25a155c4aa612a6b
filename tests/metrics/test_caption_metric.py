from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.data_sets import write_data_set
from vitcapr.commands import evaluate
from vitcapr.config.reading import parse
from vitcapr.config.report import ScoreSettings
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.metrics import caption_metric, java
from vitcapr.metrics.caption_metric import Caption, TokenisedCaptions, references_of
from vitcapr.metrics.java import tokenize_all
from vitcapr.metrics.labels import COLUMNS
from vitcapr.metrics.scoring import caption_metrics


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([("b", "x")], r"1 of 2 images of the split have no caption \(image a\)"),
        ([("a", "x"), ("b", "y"), ("c", "z")], r"not in the split \(image c\)"),
        ([("a", "x"), ("b", " ")], r"empty caption .*\(image b\); set decoding.min_length"),
        ([("a", "x"), ("b", "one\rtwo")], r"line break '\\r' \(image b, caption 'one\\rtwo'\)"),
        ([("a", "x"), ("b", "one\u2028two")], r"line break '\\u2028' \(image b"),
    ],
)
def test_captions_that_cannot_be_scored(results: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        caption_metric.check_candidates(dict(results), ["a", "b"])


@pytest.fixture
def data(tmp_path: Path) -> Manifest:
    captions = [("one", "en", "A dog."), ("one", "de", "Ein Hund."), ("one", "en", "Dogs"), ("two", "en", "Two cats")]
    splits = {"one": "test", "two": "test", "three": "train"}
    return read_manifest(write_data_set(tmp_path, splits, [*captions, ("three", "en", "x")]))


def test_references_are_those_of_the_split_and_the_language(data: Manifest) -> None:
    assert references_of(data, "test", "en") == {"one": ["A dog.", "Dogs"], "two": ["Two cats"]}
    with pytest.raises(UserError, match="no image in the split 'validation'"):
        references_of(data, "validation", "en")
    with pytest.raises(UserError, match=r"no reference in the language 'de' \(image two\)"):
        references_of(data, "test", "de")


def test_another_language_has_characters_for_tokens_and_needs_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(java, "tokenize")
    found = tokenize_all([Caption("one", "一个男人。")], {"one": ["一个 男人，2只 Hunde", "!"]}, "zh")
    assert found == (["一 个 男 人"], {"one": ["一 个 男 人 2 只 hunde", ""]})


@pytest.mark.parametrize("name", ["bleu", "rouge_l", "cider", "diversity"])
def test_every_score_of_a_metric_has_a_label(name: str) -> None:
    metric = caption_metrics()[name]
    captions = TokenisedCaptions(["a dog", "a cat"], {"1": ["a dog"], "2": ["the cat"]}, ["A dog", "A cat"])
    assert metric.measure(captions).keys() <= COLUMNS.keys()


def test_the_configuration_and_the_help_know_every_metric_and_no_other() -> None:
    page = CliRunner().invoke(evaluate.app, ["--help"], env={"COLUMNS": "400", "TERM": "dumb"}).output
    for name in caption_metrics():
        assert name in page
        assert parse(ScoreSettings, {"metrics": {"caption": [name]}}, "").metrics.caption == [name]
    with pytest.raises(UserError, match=r"must be 'bleu', 'chair', 'cider', .*'spice' .*it was \"blue\""):
        parse(ScoreSettings, {"metrics": {"caption": ["blue"]}}, "")
