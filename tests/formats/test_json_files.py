"""JSON files: what was written comes back, and what does not fit is one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from tests.formats.damage import refuses_foreign_files
from vitcapr.errors import UserError
from vitcapr.formats.captions import Candidate, read_captions, read_results, write_captions
from vitcapr.formats.embeddings import QueryBankWeight, RerankingWeight
from vitcapr.formats.model import read_card, read_tower_readers, write_card, write_tower_readers
from vitcapr.formats.pairs import read_cleaning, write_cleaning
from vitcapr.formats.scores import ParaphrasesCard, read_comparison, read_metrics, write_comparison, write_metrics
from vitcapr.formats.tokens import read_tokenizer, write_tokenizer
from vitcapr.text.cleaning import Removed

CANDIDATE = Candidate(caption="a b", tokens=("a", "b"), token_log_probs=(-0.5, -0.25, -1.0), log_prob=-1.75, score=-0.5)
IDENTITY = {"model": "m", "decoding": "d", "protocol": "p"}
DIFFERENCE = {"before": 300, "after": 0.5, "difference": -1, "low": None, "high": None, "p_value": 0.5, "verdict": "v"}
COMPARISON = {
    **{"dataset": "d", "split": "test", "images": 3, "changed": 2, "before": IDENTITY, "after": IDENTITY},
    **{"metrics": {"cider": DIFFERENCE}, "protocol": "paired"},
}
WEIGHT = RerankingWeight(0.25, [{"weight": 0.0, "cider": 0.5}], 1.0, "cider", 0.5, "0" * 64, "split:validation")
BANK = QueryBankWeight(0.25, [{"weight": 0.0, "rsum": 0.5}], 10.0, 3, 6, "rsum")
PARAPHRASES = ParaphrasesCard(3, "0" * 64, "1" * 64)
REMOVED = {"en": Removed(captions=2, characters=9, kept=8).describe()}
TOKENIZER = Tokenizer(WordLevel({"dog": 0, "[UNK]": 1}, unk_token="[UNK]")).to_str()
READERS = {"english": {"tokenizer": TOKENIZER, "languages": ["en"], "pad": 0, "max_length": 16, "segments": False}}


def _metrics(path: Path) -> None:
    scores = {"cider": {"value": 0.5, "low": None, "high": None, "n": 3}}
    write_metrics(path, dataset="d", split="test", model="m", decoding="", metrics=scores, protocol="p")


FORMATS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "captions": (lambda path: write_captions(path, [("i", [CANDIDATE])]), read_captions),
    "metrics": (_metrics, read_metrics),
    "comparison": (lambda path: write_comparison(path, COMPARISON), read_comparison),
    "reranking": (WEIGHT.write, RerankingWeight.read),
    "bank": (BANK.write, QueryBankWeight.read),
    "card": (lambda path: write_card(path.parent, {"settings": {}}), read_card),
    "paraphrases": (PARAPHRASES.write, ParaphrasesCard.read),
    "cleaning": (lambda path: write_cleaning(path, REMOVED, cleaned=True), read_cleaning),
    "tokenizer": (lambda path: write_tokenizer(path, Tokenizer.from_str(TOKENIZER)), read_tokenizer),
    "readers": (lambda path: write_tower_readers(path, READERS), read_tower_readers),
}


@pytest.mark.parametrize("name", FORMATS)
def test_foreign_and_cut_files_are_refused(tmp_path: Path, name: str) -> None:
    write, read = FORMATS[name]
    path = tmp_path / "card.json"
    write(path)
    refuses_foreign_files(read, path, empty=b"[]" if name == "captions" else None)


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    other = CANDIDATE.model_copy(update={"score": -0.75, "cosine": 0.123456789})
    write_captions(path, [("i", [CANDIDATE, other])], oracle="why")
    found = read_captions(path)["i"]
    assert (found.caption, found.tokens, found.candidates[0]) == ("a b", ("a", "b"), CANDIDATE)
    assert json.loads(path.read_text())[0]["candidates"][1]["cosine"] == 0.123457
    assert read_results(path)["i"].oracle == "why"
    write_captions(path, [("i", found.candidates)], oracle="why")
    assert read_captions(path)["i"] == found
    for weight in (WEIGHT, BANK):
        weight.write(path)
        assert type(weight).read(path) == weight
    write_comparison(path, COMPARISON)
    assert read_comparison(path) == {"format": "vitcapr-comparison-1", **COMPARISON}
    assert isinstance(read_comparison(path)["metrics"]["cider"]["before"], int)
    PARAPHRASES.write(path)
    assert ParaphrasesCard.read(path) == PARAPHRASES
    write_cleaning(path, REMOVED, cleaned=True)
    assert read_cleaning(path) == REMOVED
    write_tower_readers(path, READERS)
    assert read_tower_readers(path) == READERS


def test_any_file_in_cocos_format_can_be_scored(tmp_path: Path) -> None:
    path = tmp_path / "captions.json"
    path.write_text('[{"image_id": "b", "caption": "two", "other": 3}, {"image_id": "a", "caption": "one"}]')
    assert {image: result.caption for image, result in read_results(path).items()} == {"b": "two", "a": "one"}
    path.write_text('[{"image_id": 7, "caption": "two"}]')
    assert read_results(path).keys() == {"7"}
    path.write_text('[{"image_id": 7, "caption": "two"}, {"image_id": "7", "caption": "one"}]')
    with pytest.raises(UserError, match="an image has two captions"):
        read_results(path)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("captions", '"image_id"', '"image"', "image_id"),
        ("captions", '"log_prob": -1.75', '"log_prob": NaN', "log_prob"),
        ("captions", '"score": -0.5', '"score": -0.5, "cosine": "high"', "cosine"),
        ("metrics", "vitcapr-metrics-1", "vitcapr-metrics-2", "its format is vitcapr-metrics-2"),
        ("comparison", "vitcapr-comparison-1", "vitcapr-metrics-1", "its format is vitcapr-metrics-1"),
        ("reranking", '"weight": 0.25', '"weight": 1.5', "weight"),
        ("reranking", '"weight": 0.25', '"weight": 0.25, "extra": 1', "extra"),
        ("reranking", "vitcapr-reranking-weight-1", "vitcapr-query-bank-1", "not a weight of format"),
        ("bank", '"images": 3', '"images": 2.5', "images"),
        ("card", "vitcapr-model-2", "vitcapr-model-0", "not the card of a trained model"),
        ("paraphrases", '"entries": 3', '"entries": -1', "entries"),
        ("readers", '"pad": 0', '"pad": -1', "pad"),
        ("readers", '"tokenizer": "', '"tokenizer": "{}', "english.tokenizer"),
    ],
)
def test_content_that_does_not_fit_is_refused(tmp_path: Path, name: str, old: str, new: str, message: str) -> None:
    write, read = FORMATS[name]
    path = tmp_path / "card.json"
    write(path)
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))
    with pytest.raises(UserError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
