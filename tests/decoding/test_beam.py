"""Beam search against the blackboard version and the enumeration of every caption; greedy decoding is a beam of one."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding.reference_beam import reference_beam_search, repeats
from tests.decoding.toy_captioners import END, PAD, START, UNKNOWN, MarkovCaptioner, RandomCaptioner
from vitcapr.decoding.beam import beam_search, top_k
from vitcapr.decoding.stepwise import _first_largest, greedy
from vitcapr.errors import UserError

SPECIALS = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN]}


@st.composite
def searches(draw):
    beam_size = draw(st.integers(1, 6))
    max_length = draw(st.integers(1, 7))
    return {
        "beam_size": beam_size,
        "max_length": max_length,
        "min_length": draw(st.integers(0, min(max_length, 4))),
        "length_penalty": draw(st.sampled_from([0.0, 0.5, 0.7, 1.0, 1.5])),
        "block_ngram": draw(st.integers(0, 3)),
        "n_best": draw(st.integers(1, beam_size)),
    }


@settings(max_examples=60)
@given(
    options=searches(),
    vocabulary=st.sampled_from([9, 40, 200]),
    images=st.integers(1, 5),
    sharpness=st.sampled_from([0.1, 0.5, 1.5]),
    forbidden=st.sampled_from([[UNKNOWN], []]),
    seed=st.integers(0, 10_000),
)
def test_equals_the_reference(options, vocabulary, images, sharpness, forbidden, seed):
    model = RandomCaptioner(vocabulary, sharpness=sharpness, seed=seed)
    memory = model.images(images)
    options |= {**SPECIALS, "forbidden": forbidden}
    found = beam_search(model, memory, **options, keep_attention=True)
    expected = reference_beam_search(model, memory, **options)
    assert [[one.tokens for one in best] for best in found] == [[one.words for one in best] for best in expected]
    for one, other in zip(itertools.chain(*found), itertools.chain(*expected), strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5, rel=1e-5)
        assert one.log_prob == pytest.approx(other.total, abs=1e-5, rel=1e-5)
        assert one.token_log_probs == pytest.approx(other.log_probs, abs=1e-5, rel=1e-5)
        assert one.attention.dtype == np.float16
        assert one.attention.shape == (len(one.tokens), model.patches)
        if other.looks:
            np.testing.assert_allclose(one.attention, torch.stack(other.looks), atol=1e-3)


SMALL = RandomCaptioner(vocabulary=7, sharpness=0.4, seed=11)


@cache
def every_caption(image):
    """All captions of up to four of the three words with their log-probability, by running each from the start."""
    one = {name: tensor[image : image + 1] for name, tensor in SMALL.images(2).items()}
    captions = []
    for length in range(5):
        for caption in itertools.product([4, 5, 6], repeat=length):
            state, total = SMALL.initial_state(one), 0.0
            for last, token in itertools.pairwise([START, *caption, END]):
                step = SMALL.step(one, state, torch.tensor([[last]]))
                state = step.state
                total += torch.log_softmax(step.logits[0, 0].double(), -1)[token].item()
            captions.append((list(caption), total))
    return captions


@pytest.mark.parametrize("length_penalty", [0.0, 0.7, 1.3])
@pytest.mark.parametrize(("min_length", "block_ngram"), [(0, 0), (2, 0), (0, 1), (2, 2)])
def test_a_beam_wider_than_everything_finds_the_best_captions(length_penalty, min_length, block_ngram):
    found = beam_search(
        SMALL,
        SMALL.images(2),
        **SPECIALS,
        beam_size=100,
        max_length=4,
        n_best=12,
        min_length=min_length,
        block_ngram=block_ngram,
        length_penalty=length_penalty,
    )
    for image, best in enumerate(found):
        allowed = [
            (total / (len(words) + 1) ** length_penalty, words)
            for words, total in every_caption(image)
            if len(words) >= min_length
            and not (block_ngram and any(repeats(words[: n + 1], block_ngram) for n in range(len(words))))
        ]
        allowed.sort(key=lambda pair: -pair[0])
        assert [one.tokens for one in best] == [words for _, words in allowed[:12]]
        assert [one.score for one in best] == pytest.approx([score for score, _ in allowed[:12]], abs=1e-5)


def captions(model, **options):
    chosen = {"beam_size": 2, "max_length": 8, **options}
    (best,) = beam_search(model, model.images(1), **SPECIALS, **chosen)
    return best


def test_equal_scores_are_ordered_by_rank_and_word_number():
    vocabulary = 300
    model = MarkovCaptioner(torch.zeros(vocabulary, vocabulary))
    found = captions(model, beam_size=4, n_best=4, max_length=3, min_length=2)
    assert [one.tokens for one in found] == [[4, 4], [4, 5], [4, 6], [4, 7]]


def test_the_search_stops_when_no_hypothesis_can_win():
    class Counting(MarkovCaptioner):
        steps = 0

        def step(self, memory, state, tokens):
            self.steps += 1
            return super().step(memory, state, tokens)

    # After "4" ends with probability 0.9, no live hypothesis is above 0.1 and all later captions are worse.
    chances = torch.zeros(6, 6)
    chances[[START, START, 4, 5, 5], [4, 5, END, 5, END]] = torch.tensor([0.9, 0.1, 1.0, 0.9, 0.1])
    chances[chances.sum(1) == 0, END] = 1
    model = Counting(chances.log())
    assert captions(model, max_length=30)[0].tokens == [4]
    assert model.steps == 2


def test_finished_images_leave_the_batch():
    seen = []

    class Watched(RandomCaptioner):
        def step(self, memory, state, tokens):
            seen.append(tokens.shape)
            return super().step(memory, state, tokens)

    model = Watched(vocabulary=30, sharpness=1.0, seed=3)
    beam_search(model, model.images(16), **SPECIALS, beam_size=4, max_length=15)
    assert seen[0] == (16, 1)
    assert seen[1] == (16, 4)
    images = [shape[0] for shape in seen]
    assert images == sorted(images, reverse=True)
    assert images[-1] < 16


def test_contradictory_settings_are_an_error():
    model = MarkovCaptioner(torch.zeros(6, 6))
    with pytest.raises(UserError, match="every word is blocked"):
        captions(model, min_length=4, block_ngram=1)


@settings(max_examples=50)
@given(
    images=st.integers(1, 12),
    vocabulary=st.sampled_from([9, 40, 200]),
    sharpness=st.sampled_from([0.1, 0.5, 1.5]),
    max_length=st.integers(1, 9),
    min_length=st.integers(0, 4),
    block_ngram=st.integers(0, 3),
    seed=st.integers(0, 10_000),
)
def test_greedy_equals_a_beam_of_one(images, vocabulary, sharpness, max_length, min_length, block_ngram, seed):
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


@given(st.data())
def test_top_k_is_the_stable_sort(data):
    size = data.draw(st.sampled_from([1, 5, 63, 64, 65, 300, 1000]))
    k = data.draw(st.integers(1, min(size, 7)))
    draw = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    values = torch.randn(3, 2, size, generator=draw)
    limit = data.draw(st.sampled_from([None, 1, -torch.inf]))
    if limit is not None:
        # Few distinct values, both zeros and minus infinity among them; or minus infinity everywhere.
        values = values.round() * data.draw(st.sampled_from([1.0, -1.0]))
        values[values > limit] = -torch.inf
    ordered, order = values.sort(dim=-1, descending=True, stable=True)
    found, indices = top_k(values, k)
    assert torch.equal(found, ordered[..., :k])
    assert torch.equal(indices, order[..., :k])
