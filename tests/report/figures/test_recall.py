import pytest

from tests.report.conftest import check_layout
from vitcapr.errors import UserError
from vitcapr.formats.scores import write_metrics
from vitcapr.report.figures.recall import by_system, recall_bars
from vitcapr.stages.draw_recall import draw_recall

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


def test_a_bar_for_each_retriever_and_depth_in_percent():
    figure = recall_bars({"paper": scores(0.1), "recommended": scores(0.4)}, SEARCHED)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "image to text: 9 images among 45 captions",
        "text to image: 45 captions among 9 images",
    ]
    heights = [round(bar.get_height(), 6) for bar in figure.axes[0].patches]
    assert heights == [10, 30, 50, 40, 60, 80]
    assert {text.get_text() for text in figure.axes[1].texts} == {"10.0", "30.0", "50.0", "40.0", "60.0", "80.0"}
    interval = figure.axes[0].collections[0].get_segments()[0][:, 1]
    assert interval.tolist() == pytest.approx([7, 13])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["paper", "recommended", "by chance"]


def test_the_line_of_chance_crosses_the_bars_of_its_depth():
    axes = recall_bars({"paper": scores(0.1)}, SEARCHED).axes[0]
    lines = [line.get_segments()[0].tolist() for line in axes.collections if line.get_label() == "by chance"]
    assert lines == [[[-0.5, 1], [0.5, 1]], [[0.5, 5], [1.5, 5]], [[1.5, 10], [2.5, 10]]]
    without = recall_bars({"paper": scores(0.1, with_chance=False)}, SEARCHED)
    assert [text.get_text() for text in without.legends[0].get_texts()] == ["paper"]


@pytest.mark.parametrize("count", [6, 14])
def test_values_do_not_overlap_or_leave_the_page(count):
    figure = recall_bars({f"retriever-{n}": scores(0.5 - 0.01 * n) for n in range(count)}, SEARCHED)
    renderer = figure.canvas.get_renderer()
    for axes in figure.axes:
        boxes = [text.get_window_extent(renderer) for text in axes.texts]
        for number, box in enumerate(boxes):
            assert box.y1 <= axes.get_window_extent(renderer).y1 + 1
            assert all(not box.padded(-0.5).overlaps(other.padded(-0.5)) for other in boxes[number + 1 :])


def test_no_two_retrievers_look_alike():
    figure = recall_bars({f"retriever-{n}": scores(0.4) for n in range(20)}, SEARCHED)
    looks = {(patch.get_facecolor(), patch.get_hatch()) for patch in figure.legends[0].get_patches()}
    assert len(looks) == 20


def test_a_legend_of_long_names_stays_on_the_page():
    check_layout(recall_bars({f"a-retriever-with-a-long-name-{n}": scores(0.4) for n in range(12)}, SEARCHED))


def written(path, split="test", metrics=None):
    found = scores(0.3) if metrics is None else metrics
    write_metrics(path, dataset="toy", split=split, model="m", decoding="", metrics=found, protocol="p")
    return path


def test_the_stage(draw, tmp_path):
    one = written(tmp_path / "one.json")
    draw(draw_recall, "recall", metrics={"x": [one], "y": [one, one]})


def test_scores_of_two_splits_or_of_captions_are_mistakes(draw, tmp_path):
    one, other = written(tmp_path / "one.json"), written(tmp_path / "other.json", "validation")
    with pytest.raises(UserError, match="toy test and toy validation cannot share a figure"):
        draw(draw_recall, metrics={"x": [one], "y": [other]})
    captions = written(tmp_path / "captions.json", metrics={})
    with pytest.raises(UserError, match="no retriever has a recall"):
        draw(draw_recall, metrics={"x": [captions]})


def test_seeds_of_one_retriever_are_one_bar_with_their_spread():
    drawn = by_system({"mlp": [scores(0.1), scores(0.3)], "paper": [scores(0.5)]})
    assert list(drawn) == ["mlp, 2 seeds", "paper"]
    recall = drawn["mlp, 2 seeds"]["i2t_recall_1"]
    assert recall["value"] == pytest.approx(0.2)
    assert recall["high"] - recall["value"] == pytest.approx(0.02**0.5)
    assert drawn["paper"] == scores(0.5)
