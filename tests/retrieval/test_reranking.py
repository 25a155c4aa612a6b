import json

import numpy as np
import pytest

from vitcapr.errors import UserError
from vitcapr.formats.captions import Candidate, DecodedCaption, write_captions
from vitcapr.retrieval.n_best import Terms, choose_weight, read_n_best, write_reordered
from vitcapr.retrieval.reranking import candidate_cosines


def candidate(caption, log_probs):
    numbers = {"token_log_probs": tuple(log_probs), "log_prob": sum(log_probs), "score": sum(log_probs)}
    return Candidate(caption=caption, tokens=tuple(caption.split()), **numbers)


def n_best(image_id, candidates):
    best = candidates[0]
    return DecodedCaption(image_id=image_id, caption=best.caption, tokens=best.tokens, candidates=tuple(candidates))


FOUND = [
    n_best("one", [candidate("a", [-0.5, -0.5]), candidate("a b", [-0.5, -0.5, -0.2])]),
    n_best("two", [candidate("c", [-1.0, -1.0])]),
]
COSINES = [np.array([0.1, 0.5]), np.array([0.3])]


def write(path, found):
    write_captions(path, [(n_best.image_id, n_best.candidates) for n_best in found])
    return path


def test_scores_by_hand():
    """Lengths with the end token: 2 and 3; log-probabilities -1 and -1.2."""
    terms = Terms(FOUND, COSINES, length_penalty=1.0)
    np.testing.assert_allclose(terms.scores(0.0), [[-0.5, -0.4], [-1.0, -np.inf]])
    np.testing.assert_allclose(terms.scores(1.0), [[0.1, 0.5], [0.3, -np.inf]])
    np.testing.assert_allclose(terms.scores(0.25), [[-0.35, -0.175], [-0.675, -np.inf]])
    blind = [np.array([-2.0, -6.0]), np.array([-3.0])]
    ratio = Terms(FOUND, COSINES, 1.0, blind, alpha=0.5)  # -1 + 1 over 2 and -1.2 + 3 over 3.
    np.testing.assert_allclose(ratio.scores(0.0), [[0.0, 0.6], [-0.25, -np.inf]], atol=1e-12)
    without = Terms(FOUND, COSINES, length_penalty=0.0)
    np.testing.assert_allclose(without.scores(0.0), [[-1.0, -1.2], [-2.0, -np.inf]])
    assert without.best(0.0).tolist() == [0, 0]
    # -1 + w * 1.1 and -1.2 + w * 1.7 cross at w = 1/3.
    assert without.best(0.33).tolist() == [0, 0]
    assert without.best(0.34).tolist() == [1, 0]


def test_equal_scores_keep_the_order_of_the_decoding(tmp_path):
    same = [n_best("one", [candidate("a", [-1.0]), candidate("b", [-1.0]), candidate("c", [-0.5])])]
    terms = Terms(same, [np.array([0.5, 0.5 + 1e-9, 0.0])], 0.0)
    assert terms.best(1.0).tolist() == [0]
    write_reordered(tmp_path / "captions.json", same, list(terms.scores(1.0)))
    entry = json.loads((tmp_path / "captions.json").read_text())[0]
    assert [c["caption"] for c in entry["candidates"]] == ["a", "b", "c"]


def test_the_largest_weight_within_the_tolerance():
    terms = Terms(FOUND, COSINES, length_penalty=0.0)
    scores = [0.5, 0.58, 0.6, 0.6, 0.585, 0.57]

    def chosen(tolerance):
        left = iter(scores)
        return choose_weight(terms, lambda _: next(left), 5, tolerance)[0]

    assert chosen(0.0) == 0.4
    assert chosen(0.01) == 0.6
    assert chosen(0.015) == 0.8
    assert chosen(0.02) == 0.8
    assert chosen(0.03) == 1.0


def test_cosines_are_those_of_the_own_image():
    images = np.array([[1, 0], [0.6, 0.8]], np.float32)
    captions = np.array([[1, 0], [0, 1], [0, 1]], np.float32)
    first, second = candidate_cosines(images, captions, [2, 1])
    np.testing.assert_allclose(first, [1, 0])
    np.testing.assert_allclose(second, [0.8], rtol=1e-6)


def test_captions_that_cannot_be_reordered_are_refused(tmp_path):
    path = write(tmp_path / "captions.json", FOUND)
    with pytest.raises(UserError, match=r"not the captions of the split \(.*image three\)"):
        read_n_best(path, ["one", "two", "three"])
    with pytest.raises(UserError, match="two captions"):
        read_n_best(write(path, [FOUND[0], FOUND[0]]), ["one"])
    with pytest.raises(UserError, match=r"one candidate.*n_best"):
        read_n_best(write(path, FOUND[1:]), ["two"])
