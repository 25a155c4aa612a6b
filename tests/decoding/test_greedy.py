"""Greedy decoding is a beam of one."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_captioners import END, PAD, START, UNKNOWN, MarkovCaptioner, RandomCaptioner

from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.stepwise import _first_largest, greedy
from vitcapr.errors import UserError

SPECIALS = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN]}


@settings(max_examples=80)
@given(
    images=st.integers(1, 12),
    vocabulary=st.sampled_from([9, 40, 200]),
    sharpness=st.sampled_from([0.1, 0.5, 1.5]),
    max_length=st.integers(1, 9),
    min_length=st.integers(0, 4),
    block_ngram=st.integers(0, 3),
    seed=st.integers(0, 10_000),
)
def test_equals_a_beam_of_one(images, vocabulary, sharpness, max_length, min_length, block_ngram, seed):
    model = RandomCaptioner(vocabulary, sharpness=sharpness, seed=seed)
    memory = model.images(images)
    options = {
        **SPECIALS,
        "max_length": max_length,
        "min_length": min(min_length, max_length),
        "block_ngram": block_ngram,
        "keep_attention": True,
    }
    for one, (other,) in zip(
        greedy(model, memory, **options), beam_search(model, memory, beam_size=1, **options), strict=True
    ):
        assert one.tokens == other.tokens
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-5)
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        assert one.score == one.log_prob == pytest.approx(sum(one.token_log_probs))
        np.testing.assert_allclose(one.attention, other.attention, atol=1e-3)


@given(
    rows=st.lists(
        st.lists(st.sampled_from([-math.inf, -2.0, -0.0, 0.0, 1.5]), min_size=7, max_size=7), min_size=1, max_size=5
    )
)
def test_of_equal_words_the_first_is_taken(rows):
    assert _first_largest(torch.tensor(rows)[:, None]).tolist() == [[row.index(max(row))] for row in rows]


def test_a_diverged_model_is_an_error():
    model = MarkovCaptioner(torch.full((6, 6), torch.nan))
    with pytest.raises(UserError, match="not numbers"):
        greedy(model, model.images(2), **SPECIALS, max_length=5)
    with pytest.raises(UserError, match="not numbers"):
        beam_search(model, model.images(2), **SPECIALS, max_length=5, beam_size=3)
