import pandas as pd
import pytest

from tests.report.conftest import check_layout
from vitcapr.report.figures.recall import learning_curve

SEARCHED = {"i2t": "9 images among 45 captions", "t2i": "45 captions among 9 images"}


def test_the_line_goes_through_the_means_over_seeds_and_the_band_is_their_spread():
    mlp = pd.DataFrame({"pairs": [100, 100, 1000], "i2t": [0.1, 0.3, 0.5], "t2i": [0.2, 0.2, 0.4]})
    linear = pd.DataFrame({"pairs": [100], "i2t": [0.1], "t2i": [0.1]})
    figure = learning_curve({"mlp": mlp, "linear": linear}, SEARCHED)
    left, right = figure.axes
    assert left.get_title(loc="left") == "image to text: 9 images among 45 captions"
    assert left.lines[0].get_xydata().tolist() == [[100, pytest.approx(20)], [1000, pytest.approx(50)]]
    assert right.lines[0].get_ydata().tolist() == pytest.approx([20, 40])
    band = left.collections[0].get_paths()[0].vertices
    # The standard deviation of 10 and 30 is the square root of 200.
    assert band[:, 1].min() == pytest.approx(20 - 200**0.5)
    assert left.get_xscale() == "log"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "mlp: mean of 2 seeds", "linear: mean of 1 seeds",
    ]  # fmt: skip


def test_labels_and_legend_neither_overlap_nor_leave_the_page():
    sizes = (500, 1000, 2000, 5000, 10_000, 20_000, 29_000, 30_000)
    trainings = pd.DataFrame({"pairs": sizes, "i2t": 0.1, "t2i": 0.2})
    names = [f"a-retriever-with-a-long-name-{n}" for n in range(5)]
    figure = learning_curve(dict.fromkeys(names, trainings), SEARCHED)
    check_layout(figure)
    assert sorted(figure.axes[0].get_xticks()) == [500, 1000, 2000, 5000, 10_000, 20_000, 30_000]
