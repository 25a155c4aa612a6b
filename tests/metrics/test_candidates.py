import numpy as np
import pytest

from vitcapr.metrics.candidates import CandidateScores
from vitcapr.metrics.captions.bleu import bleu
from vitcapr.metrics.captions.cider import cider

WORDS = [["a dog runs", "a brown dog runs fast"], ["two cats"], ["a man", "a man sits down", "the man on a bench"]]
REFERENCES = [["a brown dog runs", "the dog runs fast"], ["two cats sleep", "cats"], ["a man on a bench", "man sits"]]


@pytest.mark.parametrize("name", ["cider", "bleu_2"])
def test_a_choice_scores_as_its_captions_do(name):
    def score(texts):
        return cider(texts, REFERENCES) if name == "cider" else bleu(texts, REFERENCES)[name]

    candidates = CandidateScores(WORDS, score)
    for choice in ([0, 0, 0], [1, 0, 2], [0, 0, 1]):
        texts = [of_image[rank] for of_image, rank in zip(WORDS, choice, strict=True)]
        assert candidates.of_choice(np.array(choice)) == score(texts).value
    assert [len(scores) for scores in candidates.per_candidate] == [2, 1, 3]
    assert candidates.per_candidate[2][1] == score(["a dog runs", "two cats", "a man sits down"]).per_image[2]
