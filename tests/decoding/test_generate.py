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
from vitcapr.decoding.sample import sample
from vitcapr.decoding.stepwise import Hypothesis, greedy
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.interface import Memory, State, Step

WORDS = Vocabulary.build(["a", "dog", "runs", "on", "grass"], min_count=1)
SPECIALS = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN]}
LIMITS = {"max_length": 6, "min_length": 2, "block_ngram": 2}
SEARCH = {"n_best": 2, "length_penalty": 0.7}
BEAM = {"beam_size": 3, "keep_attention": True, **SEARCH}
SAMPLING = {"temperature": 0.8, "top_k": 4, "top_p": 0.9, "seed": 3}


@pytest.mark.parametrize(
    ("options", "search"),
    [
        ({"beam_size": 1, **SEARCH, "n_best": 1}, lambda *given, **limits: [[one] for one in greedy(*given, **limits)]),
        (BEAM, partial(beam_search, **BEAM)),
        (
            {**SEARCH, "sampling": SAMPLING, "images": [5, 7, 1, 2]},
            partial(sample, samples=2, length_penalty=0.7, images=[5, 7, 1, 2], **SAMPLING),
        ),
    ],
    ids=["greedy", "beam", "sample"],
)
def test_each_way_has_the_limits(options: dict[str, Any], search: Callable[..., Any]) -> None:
    model = RandomCaptioner(len(WORDS), sharpness=0.5)
    memory = model.images(4)
    expected = search(model, memory, **SPECIALS, **LIMITS)
    assert str(generate(model, memory, WORDS, **options, **LIMITS)) == str(expected)
    for keep in (True, False):
        kept = generate(model, memory, WORDS, **{**options, **LIMITS, "keep_attention": keep})
        assert {one[0].attention is not None for one in kept} == {keep}


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


def test_attention_to_what_follows_the_patches_is_left_out():
    attended = np.array([[0.5, 0.25, 0.25]], np.float16)
    nothing = Hypothesis([], [-1.0], -1.0, -1.0, np.zeros((0, 3), np.float16))
    one = Hypothesis([WORDS.index["dog"]], [-1.0, -2.0], -3.0, -3.0, attended)
    table = attention_of([0, 1], [nothing, one], WORDS, (1, 2))
    np.testing.assert_allclose(table.weights, [[0.5, 0.25]])
    assert table.offsets.tolist() == [0, 0, 1]
