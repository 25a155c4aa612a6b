import itertools

from PIL import Image

from vitcapr.report.figures.captions import Captioned, caption_sheet
from vitcapr.report.figures.layout import print_size

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
    renderer = figure.canvas.get_renderer()
    texts = [(text.get_text(), text.get_window_extent(renderer)) for text in figure.texts]
    pictures = [("picture", axes.get_window_extent(renderer)) for axes in figure.axes]
    assert len(pictures) == 6
    for name, box in texts + pictures:
        assert box.x0 >= 0, name
        assert box.y0 >= 0, name
        assert box.x1 <= figure.bbox.x1 + 0.5, name
        assert box.y1 <= figure.bbox.y1 + 0.5, name
    for (one, box), (other, another) in itertools.combinations(texts + pictures, 2):
        # A hair's breadth of a descender over an ascender is not an overlap that anyone sees.
        shrunk = box.padded(-0.5)
        assert shrunk.width <= 0 or shrunk.height <= 0 or not shrunk.overlaps(another.padded(-0.5)), (one, other)


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
