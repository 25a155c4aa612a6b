import json

import numpy as np
import pytest
from matplotlib.image import BboxImage
from matplotlib.lines import Line2D
from matplotlib.text import Text
from PIL import Image

from tests.report.conftest import check_layout, packed, texts_of
from vitcapr.extensions.figures.caption_sheets import caption_sheet
from vitcapr.extensions.figures.stages.draw_captions import draw_captions
from vitcapr.extensions.figures.stages.draw_reranked import draw_reranked
from vitcapr.metrics import java
from vitcapr.report.figures.examples import Captioned, Run, mark_words
from vitcapr.report.figures.page_layout import print_size
from vitcapr.report.figures.style import DPI, save_figure

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
        Captioned(Image.new("RGB", shape, (90, 120, 200)), {name: [Run(caption)] for name in NAMES}, reference)
        for shape, (caption, reference) in zip(shapes, AWKWARD, strict=True)
    ]
    return caption_sheet(examples, "a note " * 40)[0]


def test_nothing_overlaps_and_nothing_is_clipped():
    """And every word of every caption is there."""
    figure = sheet()
    assert len(packed(figure, BboxImage)) == 6
    check_layout(figure)
    texts = texts_of(figure)
    drawn = "".join(texts).replace(" ", "")
    for caption, _ in AWKWARD:
        assert "".join(caption.split()) in drawn
    assert drawn.count("reference") == 6
    assert drawn.count("attention/beam") == 6
    assert "A dog." in texts  # from "A dog ."


def test_pictures_are_reduced_to_what_print_shows_and_never_enlarged():
    assert print_size(Image.new("RGB", (4000, 2000)), 2.0).size == (400, 200)
    assert print_size(Image.new("RGB", (50, 20)), 2.0).size == (50, 20)


BEFORE = ("a", "dog", "lying", "on", "the", "road")
AFTER = ("a", "dog", "on", "the", "ground", "with", "a", "shoe")


def test_changes_by_hand():
    changes = [(run.text, run.change) for run in mark_words(AFTER, before=BEFORE)]
    assert changes == [
        *(("a", ""), ("dog", ""), ("lying", "del"), ("on", ""), ("the", ""), ("road", "del")),
        *(("ground", "ins"), ("with", "ins"), ("a", "ins"), ("shoe", "ins")),
    ]
    assert mark_words(("a",), before=("a",)) == [("a", "", "")]
    assert mark_words(("a", "b"), {1: "in truth c"}, before=("b",)) == [("a", "ins", ""), ("b", "", "in truth c")]


def test_marked_words_have_a_line_each():
    image = Image.fromarray(np.zeros((40, 60, 3), np.uint8))
    words = mark_words(AFTER, before=BEFORE)
    (figure,) = caption_sheet([Captioned(image, {"CIDEr 53 → 81": words}, "A dog .")], "note")
    texts = texts_of(figure)
    assert texts[:2] == ["note", "CIDEr 53 → 81"]
    assert " ".join(texts[2:-2]) == "a dog lying on the road ground with a shoe"
    colors = {text.get_text(): text.get_color() for text in packed(figure, Text)}
    assert len({colors["a dog"], colors["lying"], colors["ground"]}) == 3
    # Two removed words; the four added ones are in two lines.
    assert len(packed(figure, Line2D)) == 2 + 2


def test_equal_captions_stand_once_and_a_wrong_word_has_a_red_line():
    image = Image.new("RGB", (60, 60))
    wrong = mark_words(["three", "boats"], {0: "in truth four"})
    captions = {"a": wrong, "b": mark_words(["four", "boats"]), "c": wrong}
    (figure,) = caption_sheet([Captioned(image, captions, "x")], "note")
    assert texts_of(figure)[1:9] == ["■", "a", "■", "c", "three", "boats", "■", "b"]
    assert [line.get_color() for line in packed(figure, Line2D)] == ["#D00000"]


def test_a_long_sheet_has_pages_of_a4(tmp_path):
    image = Image.new("RGB", (60, 60))
    many = {f"system {number}": mark_words([*LONG.split(), str(number)]) for number in range(40)}
    examples = [Captioned(image, many, "x"), *([Captioned(image, {"a": [Run("b")]}, "x")] * 12)]
    pages = caption_sheet(examples, "note")
    assert len(pages) > 1
    assert all(page.get_size_inches()[1] <= 11.69 for page in pages)
    assert any("more captions" in text for text in texts_of(pages[0]))
    for page in pages:
        check_layout(page)
    save_figure(pages, tmp_path / "x.pdf")
    save_figure(pages, tmp_path / "x.png")
    assert f"/Count {len(pages)}".encode() in (tmp_path / "x.pdf").read_bytes()
    heights = [round(page.get_size_inches()[1] * DPI) for page in pages]
    assert abs(Image.open(tmp_path / "x.png").height - sum(heights)) <= len(pages)


@pytest.fixture
def reranked(tmp_path, monkeypatch):
    """captions.json beside the data set with four of six captions changed: two towards their reference."""
    monkeypatch.setattr(java, "tokenize", lambda captions: [c.text.lower().strip(" .") for c in captions])
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
    settings = {"figures": {"examples": 3}}
    log = draw(draw_reranked, "reranked", manifest=dataset, settings=settings, **reranked)
    assert "3 of the 4 images (of 6) whose caption reranking changed, drawn at random with seed 0" in log
    assert "CIDEr rose for 2, fell for 0 and is unchanged for 2" in log
    assert "Chosen by an oracle from the references: a ceiling, not a result." in log


def test_a_reranking_that_changes_nothing_is_drawn_too(draw, dataset, reranked):
    log = draw(draw_reranked, "reranked", manifest=dataset, **{**reranked, "after": reranked["before"]})
    assert "oracle" not in log
    assert "Reranking changed no caption of 6 images." in log


def test_named_images_and_such_with_words_come_first(draw, dataset, tmp_path, monkeypatch):
    notes = []

    def spy(examples, note):
        notes.append((note, [example.reference for example in examples]))
        assert all(example.captions["beam"][0].text == "word0" for example in examples)
        return caption_sheet(examples, note)

    monkeypatch.setattr("vitcapr.extensions.figures.caption_sheets.caption_sheet", spy)
    chosen = {"examples": 2, "examples_first": ["i3.png"], "examples_words": ["wrote for i1", "For I5"]}
    values = {"captions": {"beam": tmp_path / "captions.json"}, "manifest": dataset, "split": "test", "language": "en"}
    draw(draw_captions, "captions", settings={"figures": chosen}, **values)
    note, references = notes[0]
    assert note == (
        "2 of 6 images of the test split, those of i3.png, wrote for i1, For I5 first, the others drawn at random with "
        "seed 0."
    )
    assert "What a person wrote for i3 ." in references
    assert {reference[-4:-2] for reference in references} <= {"i1", "i3", "i5"}
