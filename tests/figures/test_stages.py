import json

import numpy as np
import pytest

from vitcapr.artefacts.tokens import TokenTable
from vitcapr.artefacts.vocabulary import Vocabulary
from vitcapr.cli import draw_attention, draw_captions, draw_curves, draw_text
from vitcapr.errors import UserError

SETTINGS = json.dumps({"figures": {"formats": ["png", "svg"], "examples": 3, "attended": 2}})
HISTORY = """epoch,phase,train_loss,validation_loss,validation_cider,learning_rate,seconds
1,1,4,3,,0.001,9
2,1,3,2,,0.001,9
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def draw(run, tmp_path):
    """Draw twice; the two must agree to the byte. Returns the names of the files."""

    def call(command, *arguments):
        for folder in ("one", "two"):
            run(
                command,
                *arguments,
                "--output-dir",
                tmp_path / folder,
                "--settings",
                SETTINGS,
                "--log",
                tmp_path / "log",
            )
        written = names(tmp_path / "one")
        for name in written:
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        return written

    return call


def test_curves(draw, tmp_path):
    (tmp_path / "history.csv").write_text(HISTORY)
    (tmp_path / "backbone.csv").write_text("epoch,train_loss,validation_loss,kind\n1,3,3,0.5\n2,2,2,0.7\n")
    histories = ["--history", f"a={tmp_path}/history.csv", "--history", f"b={tmp_path}/history.csv"]
    assert draw(draw_curves.main, *histories) == ["curves.png", "curves.svg"]
    backbone = ["--backbone", tmp_path / "backbone.csv"]
    assert draw(draw_curves.main, *histories, *backbone) == ["backbone.png", "backbone.svg", "curves.png", "curves.svg"]


def test_curves_of_retrievers(draw, run, tmp_path):
    (tmp_path / "history.csv").write_text(HISTORY.replace("cider", "rsum"))
    names = draw(draw_curves.main, "--retriever", f"a={tmp_path}/history.csv")
    assert names == ["retrievers.png", "retrievers.svg"]
    with pytest.raises(UserError, match="no history is given"):
        run(draw_curves.main, "--output-dir", tmp_path)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["history.csv"], "not of the form NAME=FILE"),
        (["=x"], "not of the form"),
        (["a=x", "a=y"], "has the name 'a' twice"),
        (["a=/no/such.csv"], "no such file"),
    ],
)
def test_histories_that_cannot_be_read_are_mistakes(run, tmp_path, option, message):
    with pytest.raises(UserError, match=message):
        run(draw_curves.main, *(part for value in option for part in ("--history", value)), "--output-dir", tmp_path)


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "epoch,train_loss\n"])
def test_a_file_that_is_no_history_is_a_mistake(run, tmp_path, content):
    (tmp_path / "h.csv").write_text(content)
    with pytest.raises(UserError, match="not a history of training"):
        run(draw_curves.main, "--history", f"a={tmp_path}/h.csv", "--output-dir", tmp_path)


def test_captions(draw, dataset, tmp_path):
    captions = tmp_path / "captions.json"
    options = ["--captions", f"a/greedy={captions}", "--captions", f"a/beam={captions}", "--split", "test"]
    assert draw(draw_captions.main, *options, "--manifest", dataset) == ["captions.png", "captions.svg"]
    assert "3 images of the split test" in (tmp_path / "log").read_text()


def test_attention(draw, dataset, tmp_path):
    options = ["--captions", tmp_path / "captions.json", "--attention", tmp_path / "attention.npz", "--split", "test"]
    assert draw(draw_attention.main, *options, "--manifest", dataset) == [
        "attention-1.png",
        "attention-1.svg",
        "attention-2.png",
        "attention-2.svg",
    ]
    log = (tmp_path / "log").read_text()
    assert "image i4" in log
    assert "image i5" in log


def test_captions_and_attention_of_two_decodings_are_a_mistake(run, dataset, tmp_path):
    entries = json.loads((tmp_path / "captions.json").read_text())
    words = {"tokens": [*entries[5]["tokens"], "more"], "token_log_probs": [-1.0] * 15}
    entries[5] |= words
    entries[5]["candidates"][0] |= words
    (tmp_path / "other.json").write_text(json.dumps(entries))
    options = ["--captions", tmp_path / "other.json", "--attention", tmp_path / "attention.npz", "--split", "test"]
    with pytest.raises(UserError, match="attention for 13 words for the 14 words of image i5"):
        run(draw_attention.main, *options, "--manifest", dataset, "--output-dir", tmp_path / "o")


def test_text(draw, dataset, tmp_path):
    words = [["a", "dog"], ["a", "cat"], ["a"]]
    vocabulary = Vocabulary.build(words, min_count=2)
    vocabulary.write(tmp_path / "vocabulary.json")
    rows = np.array([0, 1, 6])
    TokenTable.build([vocabulary.encode(caption) for caption in words], rows, rows).write(tmp_path / "tokens.npz")
    options = ["--vocabulary", tmp_path / "vocabulary.json", "--tokens", tmp_path / "tokens.npz"]
    assert draw(draw_text.main, *options, "--manifest", dataset) == [
        "lengths.png",
        "lengths.svg",
        "vocabulary.png",
        "vocabulary.svg",
    ]
