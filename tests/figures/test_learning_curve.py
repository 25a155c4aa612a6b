import pytest

from vitcapr.figures.learning_curve import Trained, learning_curve


def test_the_line_goes_through_the_means_over_seeds_and_the_band_is_their_spread():
    mlp = [Trained(100, 0.1, 0.2), Trained(100, 0.3, 0.2), Trained(1000, 0.5, 0.4)]
    figure = learning_curve({"mlp": mlp, "linear": [Trained(100, 0.1, 0.1)]})
    left, right = figure.axes
    assert left.lines[0].get_xydata().tolist() == [[100, pytest.approx(20)], [1000, pytest.approx(50)]]
    assert right.lines[0].get_ydata().tolist() == pytest.approx([20, 40])
    band = left.collections[0].get_paths()[0].vertices
    # The standard deviation of 10 and 30 is the square root of 200.
    assert band[:, 1].min() == pytest.approx(20 - 200**0.5)
    assert left.get_xscale() == "log"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "mlp: mean of 2 seeds", "linear: mean of 1 seeds",
    ]  # fmt: skip


def test_one_training_each_needs_no_word_of_seeds():
    figure = learning_curve({"mlp": [Trained(100, 0.1, 0.2)]})
    assert figure.legends[0].get_texts()[0].get_text() == "mlp"
    with pytest.raises(ValueError, match="no training"):
        learning_curve({"mlp": []})
