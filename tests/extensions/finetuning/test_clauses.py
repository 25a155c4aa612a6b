"""Clauses and titles of cleaned captions."""

import doctest

import pytest

from vitcapr.extensions.finetuning import clauses
from vitcapr.extensions.finetuning.clauses import second_clause, title_spans
from vitcapr.text.cleaning import clean


def test_examples() -> None:
    assert doctest.testmod(clauses).failed == 0


@pytest.mark.parametrize(
    ("raw", "language", "parts"),
    [
        ("Begin with curiosity, end with hurt.", "en", ["Begin with curiosity ", "end with hurt"]),
        ("A dog , wow , runs .", "en", ["A dog ", "runs"]),
        ("A cat oh, on a mat", "en", ["A cat ", "on a mat"]),
        ("一只狗，在 草地上跑。", "zh", ["一只狗", "在草地上跑"]),
        ("one clause only .", "en", None),
        ("3.5 metres, high", "en", ["35 metres ", "high"]),
    ],
)
def test_a_clause_is_found_in_the_cleaned_text(raw: str, language: str, parts: list[str] | None) -> None:
    text = clean(raw, language)[0].replace("3 5", "35")
    cut = second_clause(raw, text)
    assert (None if cut is None else [text[:cut], text[cut:]]) == parts


def test_titles_need_both_marks() -> None:
    assert title_spans("《三体》和<Dune>") == [(0, 4), (5, 11)]
    assert title_spans("3 < 5, 《") == []
