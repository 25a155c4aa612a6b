import numpy as np
import pytest

from tests.data_sets import embeddings_of
from tests.report.conftest import check_layout
from vitcapr.extensions.papers.paper_figures import lengths_by_language, principal_components, recall_bars


def test_grouped_bars_start_at_zero():
    flat = {
        f"{way}_recall_{k}": {"value": k / 50, "low": 0, "high": k / 40} for way in ("i2t", "t2i") for k in (1, 5, 10)
    }
    figure = recall_bars({f"retriever-{n}": flat for n in range(15)})
    (axes,) = figure.axes
    assert [axes.get_ylim()[0], *(bar.get_y() for bar in axes.patches)] == [0] * (6 * 15 + 1)
    assert [bar.get_height() for bar in axes.containers[0]] == pytest.approx([2, 10, 20, 2, 10, 20])
    assert [label.get_text() for label in axes.get_xticklabels()][::3] == ["I2T R@1", "T2I R@1"]
    check_layout(figure)


def test_lengths_before_and_after_cleaning_a_panel_a_language():
    figure = lengths_by_language(
        {"en": (np.array([2, 4]), np.array([1, 1])), "zh": (np.array([3, 3, 3, 5]), np.array([3, 3, 3, 3]))}
    )
    english, chinese = figure.axes
    assert [line.get_ydata().tolist() for line in english.get_lines()] == [[0, 0, 0.5, 0, 0.5], [0, 1]]
    assert [line.get_ydata().tolist() for line in chinese.get_lines()] == [[0, 0, 0, 0.75, 0, 0.25], [0, 0, 0, 1]]
    assert (english.get_xlabel(), chinese.get_xlabel()) == ("words in a text", "characters in a text, without spaces")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["English: 2 texts", "Chinese: 4 texts"]
    assert english.get_legend().get_texts()[0].get_text() == "raw: median 3, mean 3.0, longest 4"


def test_components_of_points_on_a_line_explain_everything():
    flat = np.zeros((4, 3), np.float32)
    flat[:, 0] = [-2, -1, 1, 2]
    figure = principal_components(embeddings_of(flat[:2], flat, [0, 0, 1, 1]))
    assert figure.axes[0].get_xlabel() == "first component (100.0% of the variance)"
    assert figure.axes[0].get_title(loc="left") == "distance of the means 1.50"
    captions, images = figure.axes[0].collections
    assert abs(np.diff(np.asarray(images.get_offsets())[:, 0])[0]) == pytest.approx(1)
    assert len(captions.get_offsets()) == 4
