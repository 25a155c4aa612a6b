"""CIDEr-D of word numbers: by hand, and against the scorer that everyone reports."""

import math

import numpy as np
import pytest
from pycocoevalcap.cider.cider_scorer import CiderScorer

from tests.tokens import token_table
from vitcapr.formats.tokens import TokenTable
from vitcapr.training.self_critical import CiderReward

START, END = 1, 2
WORDS = 9
"""Numbers below this one; from 3 on they are words."""


def table(captions: list[tuple[int, list[int]]]) -> TokenTable:
    numbers = [[START, *words, END] for _, words in captions]
    return token_table(numbers, [row for row, _ in captions], range(len(captions)))


def text(words: list[int]) -> str:
    return " ".join("eos" if word == END else f"w{word}" for word in words)


def test_by_hand() -> None:
    """Two images, one reference each: 3 4 <end> and 5 <end>. The end token is everywhere and weighs nothing."""
    reward = CiderReward(table([(0, [3, 4]), (1, [5])]), np.array([0, 1]), WORDS)
    rare = math.log(2)
    # 3 <end>: of the words, 3 agrees and 4 is missing; no bigram agrees; a word too short.
    unigrams = rare * rare / (rare * math.sqrt(2 * rare**2))
    scores = reward(0, [[3, END], [3, 4, END], [4, 3], [END]])
    assert scores[0] == pytest.approx(10 / 4 * unigrams * math.exp(-1 / 72))
    # The reference itself: cosine 1 of words, bigrams and trigrams; neither has a 4-gram.
    assert scores[1] == pytest.approx(10 * 3 / 4)
    assert scores[2] == pytest.approx(10 / 4 * math.exp(-1 / 72))
    assert scores[3] == 0.0


def test_equals_the_reference_scorer_with_the_end_as_a_word() -> None:
    generator = np.random.default_rng(0)

    def caption() -> list[int]:
        return generator.integers(3, WORDS, generator.integers(1, 12)).tolist()  # type: ignore[no-any-return]

    rows = np.array([2, 5, 7, 11, 12, 20, 21, 22])
    references = [(int(row), caption()) for row in rows for _ in range(generator.integers(1, 6))]
    # Captions of an image outside the split must change nothing.
    reward = CiderReward(table([*references, (1, caption()), (30, caption())]), rows, WORDS)
    for _ in range(5):
        candidates = [(int(row), [*caption(), *([END] if generator.random() < 0.7 else [])]) for row in rows]
        scorer = CiderScorer()
        for row, words in candidates:
            scorer += (text(words), [text([*other, END]) for image, other in references if image == row])
        _, expected = scorer.compute_score()
        ours = [reward(row, [words])[0] for row, words in candidates]
        assert ours == pytest.approx(expected.tolist(), abs=1e-6)
