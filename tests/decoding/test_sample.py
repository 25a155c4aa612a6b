"""Captions drawn at random: from which distribution, with which log-probabilities, and from which random numbers."""

import math
from collections import Counter

import pytest
import torch

from tests.decoding.toy_captioners import END, PAD, START, UNKNOWN, MarkovCaptioner, RandomCaptioner
from vitcapr.decoding.sample import sample
from vitcapr.decoding.stepwise import pick_class

SPECIALS = {"start": START, "end": END, "pad": PAD, "forbidden": [UNKNOWN]}
A, B, C = 4, 5, 6
ODDS = {A: 0.5, B: 0.3, C: 0.2}


@pytest.fixture
def one_word() -> MarkovCaptioner:
    """Writes one word by ODDS, then ends; it would like the forbidden tokens best."""
    logits = torch.full((7, 7), -torch.inf)
    logits[START, [PAD, START, UNKNOWN]] = math.log(10.0)
    for word, chance in ODDS.items():
        logits[START, word] = math.log(chance)
        logits[word, END] = 0.0
    return MarkovCaptioner(logits)


def drawn(model, **options):
    """How often each word was drawn for 1,000 images of one sample."""
    images = 1000
    found = sample(model, model.images(images), **SPECIALS, images=range(images), samples=1, max_length=3, **options)
    return Counter(one.tokens[0] for (one,) in found)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ODDS),
        ({"temperature": 0.5}, {A: 25 / 38, B: 9 / 38, C: 4 / 38}),
        ({"top_k": 2}, {A: 5 / 8, B: 3 / 8}),
        ({"top_k": 99}, ODDS),
        ({"top_p": 0.75}, {A: 5 / 8, B: 3 / 8}),  # A and B are the fewest that hold 0.75
        ({"top_p": 0.45}, {A: 1.0}),
        ({"top_p": 0.75, "temperature": 0.5}, {A: 25 / 34, B: 9 / 34}),
        ({"top_k": 1, "temperature": 9.0}, {A: 1.0}),
    ],
)
def test_words_are_drawn_with_their_probability(one_word, options, expected):
    counts = drawn(one_word, **options)
    assert counts.keys() == expected.keys()
    for word, chance in expected.items():
        assert counts[word] / 1000 == pytest.approx(chance, abs=0.04)


def test_log_probabilities_are_the_captioners_own(one_word):
    """Whatever the temperature and the cuts; 30 is the sum of the forbidden tokens' weights."""
    options = {**SPECIALS, "max_length": 3, "temperature": 2.0, "length_penalty": 1.0}
    (found,) = sample(one_word, one_word.images(1), images=[0], samples=60, **options)
    assert [one.tokens for one in found] == [[A], [B], [C]]
    for one in found:
        expected = math.log(ODDS[one.tokens[0]] / 31)
        assert one.log_prob == pytest.approx(expected, abs=1e-5)
        assert one.token_log_probs == pytest.approx([expected, 0.0], abs=1e-5)
        assert one.score == pytest.approx(expected / 2, abs=1e-5)


def written(found):
    return [[(one.tokens, one.log_prob) for one in image] for image in found]


def alike(left, right):
    assert [[tokens for tokens, _ in image] for image in left] == [[tokens for tokens, _ in image] for image in right]
    for one, other in zip(left, right, strict=True):
        assert [value for _, value in one] == pytest.approx([value for _, value in other], abs=1e-4)


def test_an_image_has_its_own_random_numbers():
    """Alone or among others, in any order, with more samples or fewer."""
    model = RandomCaptioner(12, sharpness=0.5)
    memory = model.images(6)
    options = {**SPECIALS, "max_length": 8, "top_p": 0.95}
    together = written(sample(model, memory, images=range(6), samples=7, **options))
    assert len({str(image) for image in together}) == 6
    for image in reversed(range(6)):
        alone = {name: value[image : image + 1] for name, value in memory.items()}
        alike(written(sample(model, alone, images=[image], samples=7, **options)), together[image : image + 1])
    few = written(sample(model, memory, images=range(6), samples=3, **options))
    for less, more in zip(few, together, strict=True):
        assert {str(tokens) for tokens, _ in less} <= {str(tokens) for tokens, _ in more}
    same = {name: value[:1].expand(2, *value.shape[1:]) for name, value in memory.items()}
    first, second = written(sample(model, same, images=[0, 1], samples=7, **options))
    assert first != second
    assert written(sample(model, same, images=[0, 1], samples=7, seed=1, **options)) != [first, second]
    assert written(sample(model, same, images=[1, 0], samples=7, **options)) == [second, first]


@pytest.mark.parametrize("size", [1, 2])
def test_captions_are_different_ordered_and_within_the_limits(size):
    model = RandomCaptioner(9, sharpness=0.3)
    options = {**SPECIALS, "max_length": 4, "min_length": 2, "block_ngram": size, "keep_attention": True}
    found = sample(model, model.images(5), images=range(5), samples=40, **options)
    lengths = set()
    for image in found:
        assert len({tuple(one.tokens) for one in image}) == len(image) <= 40
        assert [one.score for one in image] == sorted((one.score for one in image), reverse=True)
        for one in image:
            lengths.add(len(one.tokens))
            assert {PAD, START, END, UNKNOWN}.isdisjoint(one.tokens)
            ngrams = list(zip(*(one.tokens[first:] for first in range(size)), strict=False))
            assert len(set(ngrams)) == len(ngrams)
            assert one.log_prob == pytest.approx(sum(one.token_log_probs))
            assert len(one.token_log_probs) == len(one.tokens) + 1
            assert one.attention.shape == (len(one.tokens), 5)
            assert one.attention.sum(1) == pytest.approx(1, abs=1e-2)
    assert lengths == {2, 3, 4}


@pytest.mark.parametrize("number", [0.0, 1 - 2**-24])
def test_a_class_without_a_share_is_never_picked(number):
    """Not even by the least and the largest number that can be drawn."""
    chances = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1e-30]])
    uniform = torch.full((3, 1), number)
    assert pick_class(chances, uniform).tolist() == ([1, 0, 4] if number else [3, 0, 4])
