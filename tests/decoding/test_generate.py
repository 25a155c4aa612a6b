"""Captions by a beam of any size, the beam of one included."""

import pytest
import torch
from toy_captioners import END, PAD, START, UNKNOWN, MarkovCaptioner, RandomCaptioner

from vitcapr.decoding import generate as module
from vitcapr.decoding.beam import beam_search
from vitcapr.decoding.generate import generate
from vitcapr.decoding.sample import sample
from vitcapr.decoding.stepwise import greedy
from vitcapr.formats.vocabulary import Vocabulary

WORDS = Vocabulary.build([["a", "dog", "runs", "on", "grass"]], min_count=1)
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


def test_a_beam_of_one_takes_the_faster_way(monkeypatch):
    monkeypatch.setattr(module, "beam_search", lambda *_, **__: pytest.fail("a beam was searched"))
    model = RandomCaptioner(len(WORDS))
    generate(model, model.images(2), WORDS, beam_size=1, n_best=1, length_penalty=1.0, **LIMITS)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_unknown_word_is_never_written(beam_size):
    logits = torch.zeros(len(WORDS), len(WORDS))
    logits[:, UNKNOWN] = 5
    model = MarkovCaptioner(logits)
    found = generate(model, model.images(1), WORDS, beam_size=beam_size, n_best=beam_size, length_penalty=0.0, **LIMITS)
    assert len(found[0]) == beam_size
    assert all(UNKNOWN not in one.tokens for one in found[0])


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
