from dataclasses import replace

import pandas as pd
import pytest

from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics import java
from vitcapr.metrics.inputs import Caption, references_of
from vitcapr.metrics.java import tokenize_all


@pytest.fixture
def data(tmp_path):
    images = pd.DataFrame({"image_id": ["one", "two", "three"], "split": ["test", "test", "train"]})
    rows = [("one", "en", "A dog.", "test"), ("one", "de", "Ein Hund.", "test"), ("one", "en", "Dogs", "test")]
    rows += [("two", "en", "Two cats", "test"), ("three", "en", "x", "train")]
    captions = pd.DataFrame(rows, columns=["image_id", "language", "text", "split"])
    return Manifest("toys", tmp_path, images, captions)


def test_references_are_those_of_the_split_and_the_language(data):
    assert references_of(data, "test", "en") == {"one": ["A dog.", "Dogs"], "two": ["Two cats"]}


def test_captions_that_cannot_be_scored_are_refused(data):
    with pytest.raises(UserError, match="no image in the split 'validation'"):
        references_of(data, "validation", "en")
    with pytest.raises(UserError, match=r"'de' cannot be scored.*English"):
        references_of(data, "test", "de")
    fewer = replace(data, captions=data.captions.drop(index=3))
    with pytest.raises(UserError, match=r"no reference in the language 'en' \(image two\)"):
        references_of(fewer, "test", "en")


def test_words_go_back_to_their_captions(monkeypatch):
    calls = []

    def tokenize(captions, timeout):
        calls.append(timeout)
        return [caption.text.lower().strip(".") for caption in captions]

    monkeypatch.setattr(java, "tokenize", tokenize)
    candidates = [Caption("two", "Two CATS"), Caption("one", "Dog."), Caption("two", "cat")]
    references = {"one": ["A dog.", "Dogs"], "two": ["Cats"]}
    words, reference_words = tokenize_all(candidates, references, 7)
    assert words == ["two cats", "dog", "cat"]
    assert reference_words == {"one": ["a dog", "dogs"], "two": ["cats"]}
    assert calls == [7]
    with pytest.raises(UserError, match="no word in it"):
        tokenize_all([Caption("one", ".")], references, 7)
    with pytest.raises(UserError, match="empty caption"):
        tokenize_all([Caption("one", " ")], references, 7)
