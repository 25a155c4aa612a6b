import numpy as np
import pytest

from tests.data_sets import angles, embeddings_of, write_data_set
from vitcapr.extensions.figures import embedding_figures as embeddings
from vitcapr.extensions.figures.embedding_figures import cosines, first_pairs, neighbourhoods, overlap
from vitcapr.extensions.figures.stages.draw_embeddings import draw_embeddings
from vitcapr.formats.embeddings import write_embeddings
from vitcapr.report import direction


@pytest.fixture
def small():
    """Image 0 at 0 degrees with captions at 0 and 90, image 1 at 90 with a caption at 60, image 2 at 180 without."""
    return embeddings_of(angles(0, 90, 180), angles(0, 90, 60), [0, 0, 1])


def blob(count, seed=0):
    generator = np.random.default_rng(seed)
    images = generator.normal(size=(count, 8)).astype(np.float32)
    captions = np.repeat(images, 2, axis=0) + generator.normal(size=(2 * count, 8)).astype(np.float32)
    unit = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (images, captions)]
    return embeddings_of(*unit, np.repeat(np.arange(count), 2))


@pytest.mark.parametrize("block", [1, 2, 512])
def test_cosines_of_true_and_hardest_wrong_pairs(small, monkeypatch, block):
    monkeypatch.setattr(direction, "_BLOCK", block)
    found = cosines(small, seed=0)
    assert found.positive == pytest.approx([1, 0, np.cos(np.pi / 6)], abs=1e-6)
    # Image 0: the caption at 60 degrees; image 1: the one at 90; image 2: the one at 90, 90 degrees away.
    assert found.hard == pytest.approx([0.5, 1, 0], abs=1e-6)


def test_random_pairs_are_wrong_pairs(small):
    drawn = np.stack([cosines(small, seed).random for seed in range(40)])
    allowed = [{0, -1}, {1, 0}, {0.5, -0.5}]
    for column, values in enumerate(allowed):
        assert {round(float(value), 4) + 0 for value in drawn[:, column]} == values


def test_an_image_that_owns_every_caption_has_no_wrong_one():
    assert len(cosines(embeddings_of(angles(0, 90), angles(0, 10), [0, 0]), 0).hard) == 1


def test_overlap_is_the_area_that_two_histograms_share():
    edges = np.linspace(0, 4, 5)
    assert overlap(np.array([0.5, 1.5]), np.array([1.5, 1.6, 1.7, 2.5]), edges) == 0.5
    assert overlap(np.array([0.5]), np.array([3.5]), edges) == 0
    assert overlap(np.array([0.5, 3.5]), np.array([0.6, 3.6]), edges) == 1


def test_the_first_pairs_are_images_with_their_first_captions(small):
    images, captions = first_pairs(small, 300)
    assert (images.tolist(), captions.tolist()) == ([0, 1], [0, 2])
    assert first_pairs(small, 1)[0].tolist() == [0]


def test_a_line_joins_each_pair_and_the_map_is_always_the_same(monkeypatch):
    monkeypatch.setattr(embeddings, "PAIRS", 12)
    one, two = (neighbourhoods(blob(20), "bag").axes[0].collections for _ in range(2))
    lines, images, captions = one
    ends = np.array(list(lines.get_segments()))
    assert ends.shape == (12, 2, 2)
    assert ends[:, 0] == pytest.approx(np.asarray(images.get_offsets()))
    assert ends[:, 1] == pytest.approx(np.asarray(captions.get_offsets()))
    assert np.array_equal(two[1].get_offsets(), images.get_offsets())


@pytest.mark.parametrize("ids", ["a", "ab"])
def test_one_image_has_no_wrong_pair_and_two_are_enough(draw, tmp_path, ids):
    captions = [(image, "en", "A dog .") for image in ids]
    manifest = write_data_set(tmp_path / "data", dict.fromkeys(ids, "test"), captions)
    degrees = [60 * place for place in range(len(ids))]
    embedded = embeddings_of(angles(*degrees), angles(*degrees), range(len(ids)))
    write_embeddings(tmp_path / "embeddings.npz", embedded)
    draw(draw_embeddings, "tsne", "cosines", retriever="bag", embeddings=tmp_path / "embeddings.npz", manifest=manifest)


def test_spaces_beside_one_another_share_a_legend():
    flat = np.zeros((4, 3), np.float32)
    flat[:, 0] = [-2, -1, 1, 2]
    figure = embeddings.spaces(dict.fromkeys("abcd", embeddings_of(flat[:2], flat, [0, 0, 1, 1])))
    assert [axes.axison for axes in figure.axes] == [True] * 4 + [False] * 2
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["2 images", "4 captions"]
