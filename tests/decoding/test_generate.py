"""Captions by a beam of any size, the beam of one included."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from tests.decoding.toy_captioners import END, PAD, START, UNKNOWN, RandomCaptioner
from tests.launches import OnDevice, no_waits
from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.generate import attention_of, candidates_of, generate
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.decoding.sample import sample
from vitcapr.decoding.stepwise import greedy
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.interface import Memory, State, Step

WORDS = Vocabulary.build(["a", "dog", "runs", "on", "grass"], min_count=1)
SPECIALS = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN]}
LIMITS = {"max_length": 6, "min_length": 2, "block_ngram": 2}


def test_a_beam_of_one_is_greedy_and_others_are_a_beam():
    model = RandomCaptioner(len(WORDS), sharpness=0.5)
    memory = model.images(4)
    alone = generate(model, memory, WORDS, beam_size=1, n_best=1, length_penalty=0.7, **LIMITS)
    expected = greedy(model, memory, **SPECIALS, **LIMITS)
    assert [one.tokens for (one,) in alone] == [one.tokens for one in expected]
    search = {"beam_size": 3, "n_best": 2, "length_penalty": 0.7}
    several = generate(model, memory, WORDS, keep_attention=True, **search, **LIMITS)
    expected = beam_search(model, memory, keep_attention=True, **SPECIALS, **search, **LIMITS)
    assert [[(one.tokens, one.log_prob) for one in best] for best in several] == [
        [(one.tokens, one.log_prob) for one in best] for best in expected
    ]
    assert all(one.attention is not None for best in several for one in best)


def test_samples_are_drawn_with_the_same_limits():
    model = RandomCaptioner(len(WORDS), sharpness=0.5)
    memory = model.images(4)
    sampling = {"temperature": 0.8, "top_k": 4, "top_p": 0.9, "seed": 3}
    search = {"beam_size": 1, "n_best": 6, "length_penalty": 0.7, "images": [5, 7, 1, 2]}
    found = generate(model, memory, WORDS, sampling=sampling, **search, **LIMITS)
    expected = sample(
        model, memory, images=[5, 7, 1, 2], samples=6, length_penalty=0.7, **sampling, **SPECIALS, **LIMITS
    )
    assert [[(one.tokens, one.score) for one in best] for best in found] == [
        [(one.tokens, one.score) for one in best] for best in expected
    ]


class OnGpu(OnDevice):
    is_cuda = True  # type: ignore[assignment]


@pytest.mark.parametrize(
    "search",
    [
        greedy,
        partial(beam_search, beam_size=4, n_best=2, length_penalty=0.7),
        partial(sample, images=range(16), samples=3, top_k=9, top_p=0.9),
    ],
    ids=["greedy", "beam", "sample"],
)
def test_a_step_asks_the_device_once(search: Callable[..., Any]) -> None:
    """And at the end of a batch a few times more, for the captions."""
    steps: list[int] = []

    class Counting(RandomCaptioner):
        def step(self, memory: Memory, state: State, tokens: Tensor) -> Step:
            steps.append(len(tokens))
            return super().step(memory, state, tokens)

    model = Counting(vocabulary=30, sharpness=1.0, seed=3)
    memory = {name: tensor.as_subclass(OnGpu) for name, tensor in model.images(16).items()}
    options = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN], "max_length": 15, "block_ngram": 2}
    expected = search(model, memory, **options)
    steps.clear()
    with no_waits(allowed=True) as waits:
        again = search(model, memory, **options)
    assert str(again) == str(expected)
    assert len(steps) > 8
    assert 0 < len(waits) <= len(steps) + 8


def test_pieces_are_read_as_words():
    pieces = Vocabulary.build([" skate", "board", "er", " on"], min_count=1, unknown=False)
    pieces = replace(pieces, rows=tuple(range(len(pieces))))
    tokens = [pieces.index[piece] for piece in (" on", " skate", "board", "er")]
    attention = np.array([[1, 0], [1, 0], [0, 1], [0.5, 0.5]], np.float16)
    one = Hypothesis(tokens, [-1.0, -2.0, -3.0, -4.0, -5.0], -15.0, -3.0, attention)
    (candidate,) = candidates_of([one], pieces)
    assert (candidate.caption, candidate.tokens) == ("on skateboarder", ("on", "skateboarder"))
    assert candidate.token_log_probs == (-1.0, -9.0, -5.0)
    np.testing.assert_allclose(attention_of([0], [one], pieces, (1, 2)).weights, [[1, 0], [0.5, 0.5]])
