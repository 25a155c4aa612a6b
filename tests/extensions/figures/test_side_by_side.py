import numpy as np
import pytest
from PIL import Image

from tests.data_sets import angles, embeddings_of, write_data_set
from tests.report.conftest import check_layout, texts_of
from vitcapr.extensions.figures.compared import (
    captions_side_by_side,
    draw_systems,
    images_side_by_side,
    matches_table,
    read_searched,
)
from vitcapr.formats.embeddings import Embeddings, write_embeddings
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.pair_files import Pools, write_pools
from vitcapr.report.direction import Match, image_to_text, text_to_image
from vitcapr.report.figures.examples import Choice


@pytest.fixture
def embedded():
    """Three images, two captions each, at known angles in a plane."""
    return embeddings_of(angles(0, 90, 180), angles(5, 20, 30, 95, 170, 185), np.repeat(np.arange(3), 2))


def test_the_first_matches_and_which_are_right(embedded):
    matches = image_to_text(embedded).first(0, 5)
    assert [match.position for match in matches] == [0, 1, 2, 3, 4]
    assert [match.positive for match in matches] == [True, True, False, False, False]
    assert matches[0].cosine == pytest.approx(np.cos(np.radians(5)))
    matches = text_to_image(embedded).first(2, 5)
    assert [(match.position, match.positive) for match in matches] == [(0, False), (1, True), (2, False)]


def test_every_model_has_its_marks(picture):
    matches = {name: [Match(n, 0.5, n == 1) for n in range(5)] for name in ("raw", "mlp")}
    figure = captions_side_by_side(picture, ["an own one"], matches, "text {}".format, "how it was drawn")
    texts = texts_of(figure)
    assert {"raw", "mlp", "an own one", "how it was drawn"} <= set(texts)
    assert sum("✓" in text for text in texts) == 2
    assert sum("✗" in text for text in texts) == 8


def test_the_same_as_text():
    matches = {"mlp": [Match(0, 0.5, True), Match(1, -0.25, False)]}
    table = matches_table("The first", "a query", matches, ["a | b", "狗"].__getitem__)
    assert table.splitlines() == [
        "**The first**",
        "",
        "Query: a query",
        "",
        "| model | | cosine | | match |",
        "| --- | ---: | ---: | --- | --- |",
        "| mlp | 1 | 0.50 | ✓ | a \\| b |",
        "| mlp | 2 | -0.25 | ✗ | 狗 |",
    ]


def test_of_pools_a_query_that_was_set_apart_is_searched_among_the_candidates_of_all_splits(embedded, tmp_path):
    splits, owners = {"a": "test", "b": "test", "c": "train"}, "aabbcc"
    data = read_manifest(write_data_set(tmp_path, splits, [(owner, "en", f"dog {owner}") for owner in owners]))
    for name in splits:
        Image.new("RGB", (4, 4)).save(tmp_path / name, "PNG")
    parts = {"test": (slice(2), slice(4), 0), "train": (slice(2, 3), slice(4, 6), 2)}
    for split, (images, captions, first) in parts.items():
        rows = embedded.caption_image[captions] - first
        part = (embedded.images[images], embedded.captions[captions], embedded.image_row[images])
        write_embeddings(tmp_path / f"{split}.npz", Embeddings(*part, embedded.caption_row[captions], rows))
    write_pools(tmp_path / "pools.npz", Pools(*(np.array(rows, "i4") for rows in ([1], [3, 4], [0], [0, 2]))))
    paths = [tmp_path / "test.npz", tmp_path / "train.npz"]
    figures, table = draw_systems(
        data, {"mlp": read_searched(paths, data, "pools", tmp_path / "pools.npz")}, "of the pools", Choice(1)
    )
    assert figures.keys() == {"top_captions", "top_images", "spaces"}
    assert [line for line in table.splitlines() if line.startswith(("**", "Query", "| mlp"))] == [
        "**The first captions among 2 of the pools, with cosines. Query: drawn at random with seed 0**",
        "Query: b",
        "| mlp | 1 | 1.00 | ✓ | dog b |",
        "| mlp | 2 | 0.17 | ✗ | dog c |",
        "**The first images among 2 of the pools, with cosines. Query: drawn at random with seed 0**",
        "Query: dog a",
        "| mlp | 1 | 1.00 | ✓ | a |",
        "| mlp | 2 | -1.00 | ✗ | c |",
    ]


def test_a_long_note_stays_on_the_page(picture):
    note = "The first captions in English and Chinese among 35,000 of the validation split, with cosines; " * 2
    matches = {"mlp": [Match(0, 0.5, True)]}
    check_layout(captions_side_by_side(picture, ["own"], matches, str, note), slack=1)
    check_layout(images_side_by_side("a query", matches, lambda _: picture, note), slack=1)
