import numpy as np
import pytest
from matplotlib.image import BboxImage
from matplotlib.text import Text
from PIL import Image

from tests.data_sets import write_data_set, write_texts
from vitcapr.formats.captions import AttentionTable, write_attention
from vitcapr.pipeline.run import run_stage

GRID = (3, 4)


def packed(figure, kind):
    """The artists of a kind in the boxes of a page, in their order."""
    return [artist for box in figure.artists for artist in box.findobj(kind)]


def texts_of(figure):
    return [text.get_text() for text in packed(figure, Text)]


def check_layout(figure, slack=0.5):
    """Nothing leaves the page, and no two of the figure's texts, images and axes with their labels overlap.

    Args:
        slack: pixels that two may overlap, or leave the page by.
    """
    renderer = figure.canvas.get_renderer()
    texts = [text for text in [*figure.texts, *packed(figure, Text)] if text.get_text()]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    boxes += [("image", image.get_window_extent(renderer)) for image in packed(figure, BboxImage)]
    boxes += [("axes", axes.get_tightbbox(renderer)) for axes in figure.axes]
    boxes += [("legend", legend.get_window_extent(renderer)) for legend in figure.legends]
    page = figure.bbox.padded(slack)
    for number, (name, box) in enumerate(boxes):
        assert page.x0 <= box.x0 <= box.x1 <= page.x1, name
        assert page.y0 <= box.y0 <= box.y1 <= page.y1, name
        for other, there in boxes[number + 1 :]:
            across = min(box.x1, there.x1) - max(box.x0, there.x0)
            up = min(box.y1, there.y1) - max(box.y0, there.y0)
            assert across <= 2 * slack or up <= 2 * slack, (name, other)


@pytest.fixture
def draw(tmp_path):
    """Run a stage that draws twice, which must give the same bytes. Returns its log."""

    def call(stage, *names, **values):
        log, (one, two) = tmp_path / "draw.log", (tmp_path / "one", tmp_path / "two")
        for folder in (one, two):
            run_stage(stage, log=log, pictures=[folder / f"{name}.svg" for name in names], **values)
        for name in names:
            assert (one / f"{name}.svg").read_bytes() == (two / f"{name}.svg").read_bytes()
        return log.read_text()

    return call


@pytest.fixture
def picture():
    """A landscape picture of smooth colours."""
    x, y = np.meshgrid(np.linspace(0, 255, 60), np.linspace(0, 255, 40))
    return Image.fromarray(np.stack([x, y, 255 - x], axis=-1).astype(np.uint8))


@pytest.fixture
def dataset(tmp_path, picture):
    """Six test images of several shapes and one for training, with captions.json and attention.npz beside them."""
    names = [f"i{number}" for number in range(7)]
    sizes = [(60, 40), (40, 60), (64, 16), (30, 30), (60, 40), (60, 40), (60, 40)]
    for name, size in zip(names, sizes, strict=True):
        picture.resize(size).save(tmp_path / f"{name}.png")
    splits = dict(zip(names, ["test"] * 6 + ["train"], strict=True))
    captions = [(name, "en", f"What a person wrote for {name} .") for name in names]
    manifest = write_data_set(tmp_path / "data", splits, captions, "toy", tmp_path, "{}.png".format)
    words = [[f"word{n}" for n in range(length)] for length in (2, 3, 4, 5, 6, 13)]
    write_texts(tmp_path / "captions.json", {name: " ".join(text) for name, text in zip(names, words, strict=False)})
    lengths = [len(text) for text in words]
    weights = np.random.default_rng(0).dirichlet(np.ones(12), size=sum(lengths)).astype(np.float16)
    write_attention(tmp_path / "attention.npz", AttentionTable(weights, np.cumsum([0, *lengths]), np.arange(6), GRID))
    return manifest
