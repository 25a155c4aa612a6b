import json

import numpy as np
import pandas as pd
import pytest

from tests.data_sets import embeddings_of
from vitcapr.formats.manifest import read_manifest
from vitcapr.report.direction import image_to_text, text_to_image
from vitcapr.report.figures.examples import Choice, open_images
from vitcapr.report.first_page.examples import best_and_worst, captioned, highest_recall, query


@pytest.fixture
def embedded():
    """Three images on the axes. Caption 0 is its image, 1 is halfway to image 1, 2 is nearer to image 0 than to its own
    image 1, 3 is opposite to its own."""
    return embeddings_of(np.eye(3), [[1, 0, 0], [0.8, 0.6, 0], [0.6, 0.8, 0], [0.6, 0.8, -0.1]], [0, 0, 1, 2])


@pytest.fixture
def asked(embedded):
    return text_to_image(embedded), image_to_text(embedded)


def test_nearest_positives_and_negatives(asked):
    to_image, to_text = asked
    np.testing.assert_allclose(np.subtract(*to_image.nearest_cosines()), [1, 0.2, 0.2, -0.9], atol=1e-6)
    np.testing.assert_allclose(to_text.nearest_cosines(), [[1, 0.8, -0.1], [0.6, 0.8, 0]], atol=1e-6)


def test_best_and_worst_ask_for_an_image_once(asked):
    to_image, to_text = asked
    # The ranks follow from the cosines.
    assert best_and_worst(to_image, np.array([1, 1, 1, 3])) == ([0, 2], [3])
    assert best_and_worst(to_text, np.array([1, 2, 4])) == ([0], [2, 1])


def test_the_true_match_follows_if_it_is_not_among_the_first(asked):
    to_image, to_text = asked
    found = query(3, to_image, 3, str, str)
    assert [(shown, rank, match.positive) for shown, match, rank in found.matches] == [
        *(("1", 1, False), ("0", 2, False), ("2", 3, True)),
    ]
    found = query(2, to_text, 4, str, str)
    assert [(shown, rank, match.positive) for shown, match, rank in found.matches] == [
        *(("0", 1, False), ("1", 2, False), ("2", 3, False), ("3", 4, True)),
    ]
    assert found.matches[-1][1].cosine == pytest.approx(-0.1)


def test_the_model_with_the_highest_recall_at_1():
    rows = [
        *(("a", "test", "i2t_recall_1", 0.5), ("a", "test", "t2i_recall_1", 0.5)),
        *(("b", "test", "i2t_recall_1", 0.9), ("b", "test", "t2i_recall_1", 0.2)),
        *(("a", "validation", "i2t_recall_1", 0.9), ("c", "test", "t2i_recall_1", 0.3)),
    ]
    summary = pd.DataFrame(rows, columns=["model", "split", "metric", "value"])
    assert highest_recall(summary, ["a", "b", "c"], "test") == "b"
    assert highest_recall(summary, ["a", "c"], "test") == "a"
    assert highest_recall(summary, ["x", "y"], "test") == "x"


def test_the_note_counts_the_changed_captions_among_the_examples(dataset, tmp_path):
    """Of six images, a reranking changed the captions of i0, i1 and i2; i0 and i5 are drawn."""
    entries = json.loads((tmp_path / "captions.json").read_text())
    for entry in entries[:3]:
        entry["caption"], entry["tokens"] = "other", ["other"]
        entry["candidates"][0] |= {"caption": "other", "tokens": ["other"], "token_log_probs": [-1.0, -1.0]}
    (tmp_path / "reranked.json").write_text(json.dumps(entries))
    captions = {"m/beam": tmp_path / "captions.json", "m/reranked": tmp_path / "reranked.json"}
    data, bases = read_manifest(dataset), {"m/reranked": "m/beam", "m/oracle": "m/beam"}
    choice = Choice(2, images=["i0", "i5"])
    with open_images(data) as read:
        section = captioned(data, "test", "en", captions, bases, choice, read)
    assert "2 of 6 images of the test split" in section.note
    assert "Reranking changed a caption of 3 of the 6 images, and of 1 of the 2 below." in section.note
    first, last = section.content
    assert first["captions"]["m/reranked"] == [
        *(("word0", "del", ""), ("word1", "del", ""), ("other", "ins", "")),
    ]
    assert {run.change for run in last["captions"]["m/reranked"]} == {""}
    assert captioned(data, "test", "en", {}, {}, choice, None) is None
