from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitcapr.errors import UserError
from vitcapr.formats.vocabulary import Vocabulary

CAPTIONS = [line.split() for line in ("a dog runs", "a dog sits", "a cat sits", "a bird")]
"""a 4, dog 2, sits 2, then bird, cat and runs once each."""


def build(captions=CAPTIONS, **options):
    return Vocabulary.build(chain(*captions), **{"min_count": 2, **options})


def test_specials_first_then_by_count_then_by_alphabet():
    vocabulary = build()
    assert vocabulary.words == ("<pad>", "<start>", "<end>", "<unk>", "a", "dog", "sits")
    assert vocabulary.counts == (0, 0, 0, 3, 4, 2, 2)
    assert vocabulary.rare == {1: 3}
    assert (vocabulary.pad, vocabulary.start, vocabulary.end, vocabulary.unknown) == (0, 1, 2, 3)
    assert vocabulary.first_word == 4
    assert vocabulary.token_coverage == pytest.approx(8 / 11)


def test_the_signature_says_where_how_often_and_how_many():
    assert build().signature == "vocab:train,>=2,7"
    both = build(min_count=3, unknown=False, splits=["train", "validation"])
    assert both.signature == "vocab:train+validation,>=3,4"


def test_rare_words_become_unknown_or_are_left_out():
    assert build().encode(["a", "cat", "sits"]) == [1, 4, 3, 6, 2]
    without = build(unknown=False)
    assert without.unknown is None
    assert without.first_word == 3
    assert without.encode(["a", "cat", "sits"]) == [1, 3, 5, 2]


def test_decoding_stops_at_the_first_end_and_leaves_specials_out():
    assert build().decode([1, 4, 3, 5, 0, 2, 6, 2]) == ["a", "<unk>", "dog"]
    assert build().decode([2]) == []


words = st.text("abcDEäßЖ漢", min_size=1, max_size=5)


@settings(max_examples=25)
@given(st.lists(st.lists(words, max_size=8), min_size=1, max_size=20), st.integers(1, 3), st.booleans())
def test_files_bring_back_the_same_vocabulary(tmp_path_factory, captions, min_count, unknown):
    try:
        vocabulary = build(captions, min_count=min_count, unknown=unknown, recipe={"x": [1]})
    except UserError:
        return
    path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.json"
    vocabulary.write(path)
    assert Vocabulary.read(path) == vocabulary
    first = path.read_bytes()
    build(captions[::-1], min_count=min_count, unknown=unknown, recipe={"x": [1]}).write(path)
    assert path.read_bytes() == first
    tokens = sum(len(caption) for caption in captions)
    assert sum(vocabulary.counts[vocabulary.first_word :]) + sum(n * k for n, k in vocabulary.rare.items()) == tokens


def test_a_caption_may_not_contain_a_special():
    with pytest.raises(UserError, match="<end>"):
        build([["a", "<end>"]])
