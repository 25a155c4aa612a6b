import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.decoding.hypotheses import block_repeats, next_log_probs


def test_forbidden_words_are_impossible_and_the_others_keep_their_probability():
    log_probs = next_log_probs(torch.tensor([[[0.0, math.log(2.0), 0.0]]]), [0])
    assert log_probs[0, 0].tolist() == pytest.approx([-math.inf, math.log(0.5), math.log(0.25)])


def test_trigram_blocking_by_hand():
    history = torch.tensor([[[4, 5, 6, 4, 5], [4, 5, 6, 5, 4]]])
    blocked = block_repeats(torch.zeros(1, 2, 8), history, 3).isneginf()
    assert blocked[0, 0].nonzero().flatten().tolist() == [6]
    assert not blocked[0, 1].any()


@given(st.lists(st.integers(0, 4), max_size=9), st.integers(1, 4))
def test_blocks_exactly_the_words_that_repeat(words, size):
    blocked = block_repeats(torch.zeros(1, 1, 5), torch.tensor(words, dtype=torch.int64)[None, None], size)
    for word in range(5):
        caption = [*words, word]
        grams = [caption[first : first + size] for first in range(len(caption) - size + 1)]
        assert bool(blocked[0, 0, word].isneginf()) == (bool(grams) and grams[-1] in grams[:-1])
