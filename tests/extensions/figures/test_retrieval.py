import numpy as np
import pytest
from matplotlib.image import BboxImage
from PIL import Image

from tests.data_sets import embeddings_of
from tests.report.conftest import check_layout, packed, texts_of
from vitcapr.errors import UserError
from vitcapr.extensions.figures.retrieved import find_failures, image_to_text, text_to_image
from vitcapr.extensions.figures.stages.draw_learning_curve import draw_learning_curve
from vitcapr.extensions.figures.stages.draw_retrieved import draw_retrieved
from vitcapr.extensions.figures.stages.draw_side_by_side import draw_side_by_side
from vitcapr.formats.embeddings import write_embeddings
from vitcapr.formats.model import CARD, write_card
from vitcapr.formats.scores import RankFile, Ranks, write_metrics
from vitcapr.report import direction
from vitcapr.report.direction import Match

IMAGES = np.eye(3, dtype=np.float32)
CAPTIONS = np.array([[0.6, 0.8, 0], [0.8, 0, 0.6], [0, 1, 0], [0, 0.96, 0.28]], np.float32)
EMBEDDED = embeddings_of(IMAGES, CAPTIONS, [0, 1, 1, 2])
# Image 0 has caption 0 (0.6), caption 1 is nearer (0.8); image 1 has caption 2 (1.0); image 2's own 0.28 comes third.
I2T, T2I = np.array([2, 1, 2]), np.array([2, 3, 1, 2])


def test_the_nearest_negative_stands_beside_the_nearest_positive():
    assert find_failures(direction.image_to_text(EMBEDDED), I2T, [0, 2]) == {
        0: [((1, pytest.approx(0.8), False), 1), ((0, pytest.approx(0.6), True), 2)],
        2: [((1, pytest.approx(0.6), False), 1), ((3, pytest.approx(0.28), True), 2)],
    }
    captions = find_failures(direction.text_to_image(EMBEDDED), T2I, [0, 1, 3])
    assert [(query, wrong.position, true.position, rank) for query, ((wrong, _), (true, rank)) in captions.items()] == [
        (0, 1, 0, 2),
        (1, 0, 1, 3),
        (3, 1, 2, 2),
    ]


def test_a_failed_image_has_both_captions_with_ranks_and_scores(picture):
    failures = {0: [(Match(1, 0.81, False), 1), (Match(2, -0.04, True), 1234)]}
    figure = image_to_text(failures, "a title", lambda _: picture, ["", "a wrong caption", "its own"].__getitem__)
    assert texts_of(figure) == [
        "a title",
        "✗ rank 1, cosine 0.81",
        "a wrong caption",
        "✓ rank 1,234, cosine -0.04",
        "its own",
    ]


def test_a_failed_caption_has_both_images(picture):
    images = [picture, Image.new("RGB", (20, 70), "red")]
    failures = {0: [(Match(0, 0.5, False), 1), (Match(1, 0.4, True), 3)]}
    figure = text_to_image(failures, "a title", images.__getitem__, lambda _: "a red thing")
    assert [image.get_array().shape[:2] for image in packed(figure, BboxImage)] == [(40, 60), (70, 20)]


@pytest.mark.parametrize("size", [(400, 20), (20, 400)])
def test_nothing_overlaps_or_leaves_the_page(size):
    failures = {key: [(Match(0, -0.88, False), 1), (Match(0, -0.88, True), 25000)] for key in range(3)}
    shows = (lambda _: Image.new("RGB", size)), (lambda _: "word " * 40)
    check_layout(image_to_text(failures, "a title " * 20, *shows), slack=1)
    check_layout(text_to_image(failures, "a title " * 20, *shows), slack=1)


@pytest.fixture
def retrieved(dataset, tmp_path):
    """The toy's manifest, and random embeddings and ranks of its six test images, by the names of parameters."""
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(2, 6, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    rows = np.arange(6, dtype=np.int32)
    write_embeddings(tmp_path / "embeddings.npz", embeddings_of(*vectors, rows))
    ranks = Ranks(rows // 3 + 1, np.full(6, 2, np.int32), np.full(6, 0.5))
    RankFile(ranks, rows, rows, rows).write(tmp_path / "ranks.npz")
    return {"embeddings": tmp_path / "embeddings.npz", "manifest": dataset, "retriever": "bag"}


def test_failures(draw, retrieved, tmp_path, monkeypatch):
    monkeypatch.setattr("vitcapr.extensions.figures.stages.draw_retrieved._FAILURES", 2)
    values = {**retrieved, "ranks": tmp_path / "ranks.npz", "split": "test"}
    log = draw(draw_retrieved, "image_to_text", "text_to_image", **values)
    assert "bag: 3 of 6 images retrieve a wrong caption (✗) first; 2 of these, drawn at random" in log
    assert "6 of 6 captions retrieve a wrong image" in log


def test_another_split_or_data_set_is_a_mistake(draw, retrieved, tmp_path):
    values = {**retrieved, "ranks": tmp_path / "ranks.npz"}
    with pytest.raises(UserError, match="not embeddings of the split train"):
        draw(draw_retrieved, split="train", **values)
    content = dict(np.load(tmp_path / "embeddings.npz"))
    for shift in (1, 2):  # The last caption has row 6.
        np.savez(tmp_path / "embeddings.npz", **{**content, "caption_row": content["caption_row"] + shift})
        with pytest.raises(UserError, match="embeddings of another data set"):
            draw(draw_retrieved, split="test", **values)


def test_ranks_of_other_embeddings_are_a_mistake(draw, retrieved, tmp_path):
    rows, ranks = np.arange(5, dtype=np.int32), np.ones(5, np.int32)
    RankFile(Ranks(ranks, ranks, np.full(5, 0.5)), rows, rows, rows).write(tmp_path / "five.npz")
    with pytest.raises(UserError, match="ranks are of other images or captions"):
        draw(draw_retrieved, split="test", ranks=tmp_path / "five.npz", **retrieved)


def test_retrievers_side_by_side_with_queries_by_id_and_by_words(draw, retrieved, tmp_path):
    embeddings = {name: [retrieved["embeddings"]] for name in "ab"}
    values = {"embeddings": embeddings, "manifest": retrieved["manifest"], "found": tmp_path / "found.md"}
    settings = {"figures": {"examples_first": ["i2"], "examples_words": ["wrote for i4"]}}
    draw(draw_side_by_side, "spaces", "top_captions", "top_images", split="test", settings=settings, **values)
    found = (tmp_path / "found.md").read_text(encoding="utf-8")
    queries = [line for line in found.splitlines() if line.startswith("Query")]
    assert queries == ["Query: i2", "Query: What a person wrote for i4 ."]
    assert found.count("\n| a | ") == found.count("\n| b | ") == 10
    assert found.count("✓") + found.count("✗") == 20
    with pytest.raises(UserError, match="not embeddings of the split train"):
        draw(draw_side_by_side, split="train", **values)


def test_embeddings_of_other_captions_are_not_put_side_by_side(draw, retrieved, tmp_path):
    content = dict(np.load(retrieved["embeddings"]))
    fewer = {name: content[name][:5] for name in ("captions", "caption_row", "caption_image")}
    np.savez(tmp_path / "fewer.npz", **{**content, **fewer})
    embeddings = {"a": [retrieved["embeddings"]], "b": [tmp_path / "fewer.npz"]}
    values = {"manifest": retrieved["manifest"], "found": tmp_path / "found.md", "split": "test"}
    with pytest.raises(UserError, match="the embeddings of 'b' are of other images or captions"):
        draw(draw_side_by_side, embeddings=embeddings, **values)


def test_a_learning_curve_from_cards_and_scores(draw, dataset, tmp_path):
    cards, metrics = [], []
    for number, pairs in enumerate((100, 100, None)):
        cards.append(tmp_path / str(number) / CARD)
        metrics.append(tmp_path / f"metrics{number}.json")
        write_card(cards[-1].parent, {"settings": {"retriever": {"training": {"pairs": pairs}}}})
        score = {"value": 0.1 + 0.1 * number, "low": None, "high": None, "n": 6}
        scores = {f"{way}_recall_1": score for way in ("i2t", "t2i")}
        content = {"dataset": "toy", "split": "test", "model": "m", "decoding": "", "metrics": scores, "protocol": ""}
        write_metrics(metrics[-1], **content)
    values = {"manifest": dataset, "language": "en"}
    draw(draw_learning_curve, "learning_curve", cards={"mlp": cards}, metrics={"mlp": metrics}, **values)
    with pytest.raises(UserError, match="not the card"):
        draw(draw_learning_curve, cards={"mlp": metrics}, metrics={"mlp": metrics}, **values)
