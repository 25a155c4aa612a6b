import json

import pytest

from vitcapr.errors import UserError
from vitcapr.formats.captions import read_attention
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.report.figures.attention import attended_words
from vitcapr.report.figures.examples import Choice, choose_attended
from vitcapr.stages.draw_attention import draw_attention

SETTINGS = json.dumps({"figures": {"examples": 3, "attention_images": 2}})


@pytest.fixture
def attended(dataset, tmp_path):
    """The inputs of draw_attention. The captions of i0 to i5 are word0 to word1, 2, 3, 4, 5, and 12."""
    Vocabulary.build([f"word{n}" for n in range(13)], min_count=1).write(tmp_path / "vocabulary.json")
    files = {name: tmp_path / f"{name}.json" for name in ("captions", "vocabulary")}
    return {**files, "attention": tmp_path / "attention.npz", "manifest": dataset, "split": "test"}


def figures(**values):
    return json.dumps({"figures": values})


def test_attention(draw, attended):
    log = draw(draw_attention, "attention-1", "attention-2", settings=SETTINGS, **attended)
    assert "image i4: word0" in log
    assert "image i5: word0" in log


def test_attention_of_chosen_images_and_words(draw, attended, monkeypatch):
    drawn = []

    def spy(image, words, weights, note):
        drawn.append((words, weights.shape, note))
        return attended_words(image, words, weights, note)

    monkeypatch.setattr("vitcapr.report.figures.attention.attended_words", spy)
    # i6 is an image of training. The first two named have word1 alone; i5 has word12, and no caption has another word.
    chosen = figures(attention_images=1, attention_first=["i3.png", "i0", "i6"], attention_words=["word12", "word1"])
    numbers = range(1, 6)
    log = draw(draw_attention, *(f"attention-{number}" for number in numbers), settings=chosen, **attended)
    assert [line.split(": ")[0].split()[-1] for line in log.splitlines() if "image i" in line][:3] == ["i3", "i0", "i5"]
    assert [(words, shape) for words, shape, _ in drawn[:3]] == [
        (["word1"], (1, 3, 4)),
        (["word1"], (1, 3, 4)),
        (["word1", "word12"], (2, 3, 4)),
    ]
    assert drawn[1][2] == "word0 word1 (score 0.00, log-probability -3.00)"


def test_each_word_has_an_image(dataset, tmp_path):
    """The caption of i4 has the most of the words; after it, i5 alone has one that i4 has not."""
    words, table = ["word5", "word4", "word3", "word9"], read_attention(tmp_path / "attention.npz")
    choice = Choice(2, 0, words=words)
    chosen = choose_attended(read_manifest(dataset), "test", tmp_path / "captions.json", table, choice)
    held = [{*words} & {*one.caption.tokens} for one in chosen]
    assert set.union(*held) == {*words}


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"attention_first": ["i33.png"]}, "data set toy has no image 'i33.png'.* did you mean 'i3.png'?"),
        ({"attention_words": ["Word1"]}, "the vocabulary has no word 'Word1'.* did you mean 'word1'?"),
        ({"attention_words": ["a", "a"]}, "figures.attention_words.*'a' is listed twice"),
    ],
)
def test_an_unknown_image_or_word_is_one_line(draw, attended, chosen, message):
    with pytest.raises(UserError, match=message):
        draw(draw_attention, "attention-1", settings=figures(**chosen), **attended)


def test_captions_and_attention_of_two_decodings_are_a_mistake(draw, attended, tmp_path):
    entries = json.loads((tmp_path / "captions.json").read_text())
    words = {"tokens": [*entries[5]["tokens"], "more"], "token_log_probs": [-1.0] * 15}
    entries[5] |= words
    entries[5]["candidates"][0] |= words
    (tmp_path / "other.json").write_text(json.dumps(entries))
    with pytest.raises(UserError, match="attention for 13 words for the 14 words of image i5"):
        draw(draw_attention, "attention-1", **{**attended, "captions": tmp_path / "other.json"})
