import json

import numpy as np
import pytest
from matplotlib.lines import Line2D
from PIL import Image

from tests.report.figures.conftest import check_layout
from vitcapr.metrics import java
from vitcapr.report.figures.captions import Captioned, Reranked, caption_sheet, changes, reranked_sheet
from vitcapr.report.figures.layout import print_size
from vitcapr.stages.draw_reranked import draw_reranked

LONG = "a man in a red shirt and a woman with a blue umbrella stand in front of a very tall building " * 3
AWKWARD = [
    ("a dog", "A dog ."),
    (LONG, LONG),
    ("", ""),
    ("superextraordinarilylongwordwithoutanyplacetocut" * 2, "costs $5 and $6 & <unk> \\frac{1}{2} %"),
    ("a\nb\tc", "Ünïcödé çaption"),
    ("two dogs", "x"),
]
NAMES = ["attention/beam", "a-model-with-a-very-long-name-indeed/beam-search-of-width-five"]


def sheet(shapes=((60, 40), (40, 60), (400, 20), (20, 400), (30, 30), (1, 1))):
    examples = [
        Captioned(Image.new("RGB", shape, (90, 120, 200)), [caption, caption], reference)
        for shape, (caption, reference) in zip(shapes, AWKWARD, strict=True)
    ]
    return caption_sheet(examples, NAMES)


def test_nothing_overlaps_and_nothing_is_clipped():
    figure = sheet()
    assert len(figure.axes) == 6
    check_layout(figure)


def test_every_word_of_every_caption_is_there():
    texts = [text.get_text() for text in sheet().texts]
    drawn = "".join(texts).replace(" ", "")
    for caption, _ in AWKWARD:
        assert "".join(caption.split()) in drawn
    assert drawn.count("reference") == 6
    assert drawn.count("attention/beam") == 6
    assert "(nothing)" in drawn
    assert "A dog." in texts  # from "A dog ."


def test_pictures_are_reduced_to_what_print_shows_and_never_enlarged():
    assert print_size(Image.new("RGB", (4000, 2000)), 2.0).size == (400, 200)
    assert print_size(Image.new("RGB", (50, 20)), 2.0).size == (50, 20)


BEFORE = ("a", "dog", "lying", "on", "the", "road")
AFTER = ("a", "dog", "on", "the", "ground", "with", "a", "shoe")


def example(size=(60, 40), before=BEFORE, after=AFTER):
    picture = Image.fromarray(np.zeros((size[1], size[0], 3), np.uint8))
    return Reranked(picture, before, after, (0.53, 0.811), "A dog lies there .")


def test_changes_by_hand():
    gone, new = changes(BEFORE, AFTER)
    assert [word for word, is_gone in zip(BEFORE, gone, strict=True) if is_gone] == ["lying", "road"]
    assert [word for word, is_new in zip(AFTER, new, strict=True) if is_new] == ["ground", "with", "a", "shoe"]
    assert changes(("a",), ("a",)) == ([False], [False])
    assert changes((), ("a",)) == ([], [True])


def test_marked_words_have_a_line_each_and_scores_stand_beside():
    figure = reranked_sheet([example()], "note")
    texts = [text.get_text() for text in figure.texts]
    assert texts[0] == "note"
    assert "before, CIDEr 53" in texts
    assert "after, CIDEr 81" in texts
    assert texts[texts.index("before, CIDEr 53") + 1 :][: len(BEFORE)] == list(BEFORE)
    # Two words that went, four that came.
    assert len([artist for artist in figure.artists if isinstance(artist, Line2D)]) == 2 + 4
    colors = {text.get_text(): text.get_color() for text in figure.texts}
    assert colors["road"] != colors["dog"] != colors["ground"]


def test_words_in_lines_neither_overlap_nor_leave_the_page():
    words = tuple(f"remarkably{n}" for n in range(9))
    sizes = [(60, 40), (40, 60), (64, 16), (30, 30), (60, 40)]
    check_layout(reranked_sheet([example(size, words, words[::-1]) for size in sizes], "a note " * 40), slack=1)


@pytest.fixture
def reranked(tmp_path, monkeypatch):
    """captions.json beside the data set with four of six captions changed: two towards their reference."""
    monkeypatch.setattr(java, "tokenize", lambda captions, _: [c.text.lower().strip(" .") for c in captions])
    entries = json.loads((tmp_path / "captions.json").read_text())
    for number, entry in enumerate(entries[:4]):
        entry["caption"] = f"what a person wrote for i{number}" if number < 2 else "entirely other words"
        entry["tokens"] = entry["caption"].split()
        entry["oracle"] = "a mark"
        log_probs = [-1.0] * (len(entry["tokens"]) + 1)
        entry["candidates"][0] |= {name: entry[name] for name in ("caption", "tokens")} | {"token_log_probs": log_probs}
    (tmp_path / "reranked.json").write_text(json.dumps(entries))
    return {
        "before": tmp_path / "captions.json",
        "after": tmp_path / "reranked.json",
        "split": "test",
        "language": "en",
    }


def test_the_log_says_how_the_examples_were_drawn(draw, dataset, reranked):
    settings = json.dumps({"figures": {"examples": 3, "seed": 5}})
    log = draw(draw_reranked, "reranked", manifest=dataset, settings=settings, **reranked)
    assert "3 of the 4 images (of 6) whose caption reranking changed, drawn at random with seed 5" in log
    assert "CIDEr rose for 2, fell for 0 and stayed for 2" in log
    assert "Chosen by an oracle from the references: a ceiling, not a result." in log


def test_a_reranking_that_changes_nothing_is_drawn_too(draw, dataset, reranked):
    log = draw(draw_reranked, "reranked", manifest=dataset, **{**reranked, "after": reranked["before"]})
    assert "oracle" not in log
    assert "Reranking changed no caption of 6 images." in log
