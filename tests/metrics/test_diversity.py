import math

import pytest

from vitcapr.metrics.caption_metric import TokenisedCaptions
from vitcapr.metrics.captions import diversity
from vitcapr.text.normalise import words_of

CAPTIONS = [text.split() for text in ("a dog runs", "a dog runs", "a cat on a", "birds")]


def test_distinct_by_hand() -> None:
    """11 words, of which a dog runs cat on birds; 7 pairs, of which 'a dog' and 'dog runs' occur twice."""
    assert diversity.distinct(CAPTIONS, 1) == pytest.approx(6 / 11)
    assert diversity.distinct(CAPTIONS, 2) == pytest.approx(5 / 7)
    assert math.isnan(diversity.distinct([["birds"]], 2))


def test_counts() -> None:
    assert diversity.vocabulary_used(CAPTIONS) == 6
    assert diversity.identical_captions(CAPTIONS) == 2
    assert diversity.identical_captions([["a"], ["b"]]) == 0


def test_length_and_dangling_endings() -> None:
    assert diversity.length_mean(CAPTIONS).value == 11 / 4
    assert diversity.dangling_share(CAPTIONS).per_image.tolist() == [0, 0, 1, 0]
    assert diversity.dangling_share([["a", "man", "with"], ["a", "man"]]).value == 0.5
    english, chinese = (TokenisedCaptions(["a dog on"], {}, ["a dog on"], language=each) for each in ("en", "zh"))
    assert diversity.METRIC.measure(english).keys() - diversity.METRIC.measure(chinese).keys() == {"dangling_share"}


def test_loops_repeat_words_in_a_row() -> None:
    loops = ["a red and black and black and black", "dogs run dogs run", "a a a"]
    others = ["a very very big dog", "a red shirt and a red hat", "dog", "a a", ""]
    shares = diversity.loop_share([text.split() for text in [*loops, *others]])
    assert shares.per_image.tolist() == [1] * 3 + [0] * 5


def test_punctuation_does_not_make_a_caption_novel() -> None:
    training = ["A dog runs!", "Two 2 cats", "the man's hat"]
    captions = ["a dog runs", "dog runs", "two cats", "a dog", "the mans hat", "dogruns here"]
    assert diversity.novel_share(captions, training).per_image.tolist() == [0, 0, 0, 1, 0, 1]
    assert diversity.novel_share(["一只 狗", "狗"], ["一只狗。"]).per_image.tolist() == [0, 1]


@pytest.mark.parametrize("non_letters", ["space", "remove", "keep"])
@pytest.mark.parametrize("drop", [False, True])
def test_a_training_caption_is_not_novel_with_any_vocabulary(non_letters, drop) -> None:
    training = ["A man in a t-shirt .", "the man's hat", "They cannot see", "A 3-year-old boy, x-rayed"]
    written = [" ".join(words_of(text, non_letters=non_letters, drop_one_letter=drop)) for text in training]
    assert not diversity.novel_share(written, training).per_image.any()
    assert diversity.novel_share(["man in skirt", "year old girl"], training).value == 1
