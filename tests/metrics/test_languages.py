"""Captions that find captions of the same picture in another language."""

import numpy as np

from vitcapr.metrics.languages import cross_ranks


def test_any_caption_of_the_picture_is_a_hit_and_ties_count_against_us() -> None:
    queries = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    found = np.array([[0.6, 0.8], [1, 0], [0, 1], [1, 0]], np.float32)
    ranked = cross_ranks(queries, np.array([0, 1, 9]), found, np.array([0, 0, 1, 2]))
    assert ranked.ranks.tolist() == [2, 1]  # of picture 0 the second caption is best, and one of picture 2 equals it
    assert ranked.picture.tolist() == [0, 1]  # picture 9 has no caption in the other language
    assert ranked.pool == 4
