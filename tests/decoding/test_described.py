import json

import numpy as np
import pytest

from vitcapr.decoding.generate import attention_of, candidates_of
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.formats.captions import write_attention, write_captions

WORDS = ["<pad>", "<start>", "<end>", "狗", "runs"]


def hypothesis(tokens, *log_probs, patches=6):
    attention = np.arange(len(tokens) * patches, dtype=np.float16).reshape(len(tokens), patches)
    return Hypothesis(tokens, list(log_probs), sum(log_probs), sum(log_probs) / 2, attention)


@pytest.fixture
def found():
    return [[hypothesis([3, 4], -0.5, -0.25, -0.125), hypothesis([4], -1.0, -2.0)], [hypothesis([], -3.0)]]


def test_captions(tmp_path, found):
    path = tmp_path / "new" / "captions.json"
    described = [candidates_of(one, lambda ids: " ".join(WORDS[number] for number in ids), WORDS) for one in found]
    write_captions(path, zip(["a.jpg", "b.jpg"], described, strict=True))
    first, second = json.loads(path.read_text(encoding="utf-8"))
    best = {
        "caption": "狗 runs",
        "tokens": ["狗", "runs"],
        "token_log_probs": [-0.5, -0.25, -0.125],
        "log_prob": -0.875,
        "score": -0.4375,
    }
    other = {"caption": "runs", "tokens": ["runs"], "token_log_probs": [-1, -2], "log_prob": -3, "score": -1.5}
    assert first == {"image_id": "a.jpg", **best, "candidates": [best, other]}
    assert second["caption"] == ""
    assert second["tokens"] == []
    assert second["token_log_probs"] == [-3]


def test_attention(tmp_path, found):
    best = [candidates[0] for candidates in found] + [hypothesis([4], -1, -1)]
    write_attention(tmp_path / "one.npz", attention_of([5, 7, 8], best, (2, 3)))
    write_attention(tmp_path / "two.npz", attention_of([5, 7, 8], best, (2, 3)))
    with np.load(tmp_path / "one.npz", allow_pickle=False) as stored:
        assert {name: stored[name].dtype.name for name in stored} == {
            "weights": "float16",
            "offsets": "int64",
            "image_row": "int32",
            "grid": "int64",
        }
        assert stored["weights"].shape == (3, 6)
        assert stored["offsets"].tolist() == [0, 2, 2, 3]
        assert stored["image_row"].tolist() == [5, 7, 8]
        assert stored["grid"].tolist() == [2, 3]
        np.testing.assert_array_equal(stored["weights"][2], np.arange(6))
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_attention_of_empty_captions(tmp_path):
    write_attention(tmp_path / "none.npz", attention_of([0], [hypothesis([], -1.0)], (2, 3)))
    with np.load(tmp_path / "none.npz", allow_pickle=False) as stored:
        assert stored["weights"].shape == (0, 6)
