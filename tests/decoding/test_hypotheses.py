"""Which words may come next, and the order of the best ones."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.decoding.beam import top_k
from vitcapr.decoding.hypotheses import block_repeats, next_log_probs


def test_forbidden_words_are_impossible_and_the_others_keep_their_probability():
    log_probs = next_log_probs(torch.tensor([[[0.0, math.log(2.0), 0.0]]]), torch.tensor([0]))
    assert log_probs[0, 0].tolist() == pytest.approx([-math.inf, math.log(0.5), math.log(0.25)])


@given(st.lists(st.integers(0, 4), max_size=9), st.integers(1, 4))
def test_blocks_exactly_the_words_that_repeat(words, size):
    blocked = block_repeats(torch.zeros(1, 1, 5), torch.tensor(words, dtype=torch.int64)[None, None], size)
    for word in range(5):
        caption = [*words, word]
        grams = [caption[first : first + size] for first in range(len(caption) - size + 1)]
        assert bool(blocked[0, 0, word].isneginf()) == (bool(grams) and grams[-1] in grams[:-1])


@given(st.data())
def test_is_the_stable_sort(data):
    size = data.draw(st.sampled_from([1, 5, 63, 64, 65, 300, 1000]))
    k = data.draw(st.integers(1, min(size, 7)))
    draw = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    values = torch.randn(3, 2, size, generator=draw)
    if data.draw(st.booleans()):
        # Few distinct values, both zeros and minus infinity among them.
        values = values.round() * data.draw(st.sampled_from([1.0, -1.0]))
        values[values > 1] = -torch.inf
    ordered, order = values.sort(dim=-1, descending=True, stable=True)
    found, indices = top_k(values, k)
    assert torch.equal(found, ordered[..., :k])
    assert torch.equal(indices, order[..., :k])


def test_minus_infinity_everywhere_gives_real_indices():
    _, indices = top_k(torch.full((1, 130), -torch.inf), 2)
    assert indices.tolist() == [[0, 1]]
