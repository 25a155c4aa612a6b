import pytest

from tests.report.conftest import check_layout
from vitcapr.errors import UserError
from vitcapr.extensions.figures.recall_intervals import recall_intervals
from vitcapr.extensions.figures.stages.draw_recall import draw_recall
from vitcapr.formats.scores import write_metrics
from vitcapr.report.figures.recall import by_system

SEARCHED = {"i2t": "9 images among 45 captions", "t2i": "45 captions among 9 images"}


def scores(first, with_chance=True):
    found = {}
    for direction in ("i2t", "t2i"):
        for number, depth in enumerate((1, 5, 10)):
            value = first + 0.2 * number
            found[f"{direction}_recall_{depth}"] = {"value": value, "low": value - 0.03, "high": value + 0.03, "n": 9}
            if with_chance:
                found[f"{direction}_recall_{depth}_chance"] = {"value": depth / 100, "low": None, "high": None, "n": 9}
    return found


def panels(figure):
    """The panels of each direction, and the title of each."""
    return [(part.get_suptitle(), part.axes) for part in figure.subfigs]


def test_a_point_and_its_interval_for_each_retriever_direction_and_depth_in_percent():
    figure = recall_intervals({"paper": scores(0.1), "of_us": scores(0.4)}, SEARCHED)
    (title, first), (other, second) = panels(figure)
    assert title == "image to text: 9 images among 45 captions"
    assert other == "text to image: 45 captions among 9 images"
    assert [[line.get_xdata()[0] for line in axes.lines] for axes in first] == [
        pytest.approx([10, 40]),
        pytest.approx([30, 60]),
        pytest.approx([50, 80]),
    ]
    assert [text.get_text() for text in second[1].texts] == ["30.0", "60.0"]
    assert first[0].collections[1].get_segments()[0].tolist() == [pytest.approx([37, 1]), pytest.approx([43, 1])]
    assert [label.get_text() for label in first[0].get_yticklabels()] == ["paper", "of us"]
    assert [axes.get_xlabel() for axes in first] == [f"R@{k} (%); by chance {k:.1f}" for k in (1, 5, 10)]
    without = recall_intervals({"paper": scores(0.1, with_chance=False)}, SEARCHED)
    assert panels(without)[0][1][0].get_xlabel() == "R@1 (%)"


@pytest.mark.parametrize(("count", "best"), [(1, 0.5), (14, 0.6)])
def test_nothing_overlaps_or_leaves_the_page(count, best):
    """The highest recall@10 is 90 or 100 percent."""
    names = [f"a-retriever-with-a-long-name-{n}" for n in range(count)]
    figure = recall_intervals({name: scores(best - 0.01 * n) for n, name in enumerate(names)}, SEARCHED)
    check_layout(figure)


def written(path, split="test", metrics=None):
    found = scores(0.3) if metrics is None else metrics
    write_metrics(path, dataset="toy", split=split, model="m", decoding="", metrics=found, protocol="p")
    return path


def test_scores_of_two_splits_or_of_captions_are_mistakes(draw, tmp_path):
    one, other = written(tmp_path / "one.json"), written(tmp_path / "other.json", "validation")
    with pytest.raises(UserError, match="toy test and toy validation cannot share a figure"):
        draw(draw_recall, metrics={"x": [one], "y": [other]})
    captions = written(tmp_path / "captions.json", metrics={})
    with pytest.raises(UserError, match="no retriever has a recall"):
        draw(draw_recall, metrics={"x": [captions]})


def test_seeds_of_one_retriever_are_one_point_with_their_spread():
    drawn = by_system({"mlp": [scores(0.1), scores(0.3)], "paper": [scores(0.5)]})
    assert list(drawn) == ["mlp, 2 seeds", "paper"]
    recall = drawn["mlp, 2 seeds"]["i2t_recall_1"]
    assert recall["value"] == pytest.approx(0.2)
    assert recall["high"] - recall["value"] == pytest.approx(0.02**0.5)
    assert drawn["paper"] == scores(0.5)
