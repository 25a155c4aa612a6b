import gzip
import itertools
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge

from vitcapr.errors import UserError
from vitcapr.metrics import java
from vitcapr.metrics.candidates import CandidateScores
from vitcapr.metrics.caption_metric import Caption
from vitcapr.metrics.captions.bleu import bleu
from vitcapr.metrics.captions.cider import cider
from vitcapr.metrics.captions.meteor import find_paraphrases, measure_of, meteor_of, write_paraphrases
from vitcapr.metrics.captions.rouge_l import rouge_l

Words = tuple[list[str], list[list[str]]]


def as_coco(words: Words) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    candidates, references = words
    return dict(enumerate(references)), {number: [text] for number, text in enumerate(candidates)}


def test_bleu_by_hand() -> None:
    """Two captions: 'the the cat' clips one 'the' and is short of its closest reference by one word."""
    measures = bleu(["the the cat", "a dog runs"], [["the cat sat there", "a b c d e f"], ["a dog runs"]])
    unigrams, bigrams, trigrams = (2 + 3) / 6, (1 + 2) / 4, (0 + 1) / 2
    brevity = math.exp(1 - 7 / 6)
    assert measures["bleu_1"].value == pytest.approx(brevity * unigrams, rel=1e-6)
    assert measures["bleu_2"].value == pytest.approx(brevity * (unigrams * bigrams) ** (1 / 2), rel=1e-6)
    assert measures["bleu_3"].value == pytest.approx(brevity * (unigrams * bigrams * trigrams) ** (1 / 3), rel=1e-6)
    assert measures["bleu_1"].per_image == pytest.approx([math.exp(1 - 4 / 3) * 2 / 3, 1])
    # Of equally close references the shorter counts.
    assert bleu(["a b c"], [["a b", "a b c d"]])["bleu_1"].value == pytest.approx(1)


def test_rouge_l_by_hand() -> None:
    """Longest common subsequence 'a dog snow' of 4 and 5 words: P = 3/4, R = 3/5, F with beta 1.2."""
    expected = (1 + 1.44) * 0.75 * 0.6 / (0.6 + 1.44 * 0.75)
    assert rouge_l(["a dog likes snow"], [["a big dog in snow"]]).value == pytest.approx(expected)


def test_cider_by_hand() -> None:
    """Every word is in one image's reference: all weights are equal, and a copy of the only reference scores 10.

    Of one-word captions only the unigram vectors are not null: a quarter of 10.
    """
    assert cider(["a b c d", "e f g h"], [["a b c d"], ["e f g h"]]).value == pytest.approx(10)
    assert cider(["a", "x"], [["a"], ["b"]]).per_image == pytest.approx([2.5, 0])
    assert cider(["a dog"], [["a dog"]]).value == 0, "of one image"


def test_bleu_rouge_and_cider_equal_pycocoevalcap(words: Words) -> None:
    references, candidates = as_coco(words)
    bleus, per_image = Bleu().compute_score(references, candidates, verbose=0)
    for order, measure in enumerate(bleu(*words).values()):
        assert measure.value == pytest.approx(bleus[order], abs=1e-12)
        assert measure.per_image == pytest.approx(per_image[order], abs=1e-12)
    for measure, scorer in ((rouge_l(*words), Rouge()), (cider(*words), Cider())):
        score, scores = scorer.compute_score(references, candidates)
        assert measure.value == pytest.approx(score, abs=1e-12)
        assert measure.per_image == pytest.approx(scores, abs=1e-12)


@pytest.fixture
def few_paraphrases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """METEOR, also pycocoevalcap's, with a few of its 5.6 million entries, and one that a caption needs."""
    folder = tmp_path / "jar"
    (folder / "data").mkdir(parents=True)
    shutil.copy(java.JARS / "meteor" / "meteor-1.5.jar", folder)
    table = folder / "data" / "paraphrase-en.gz"
    with gzip.open(java._PARAPHRASES, "rt", encoding="utf-8") as whole:
        some = "".join(itertools.islice(whole, 3 * 2000))
    table.write_bytes(gzip.compress((some + "0.5\ntwo children\ntwo kids\n").encode()))
    monkeypatch.setattr(java, "_METEOR", str(folder / "meteor-1.5.jar"))
    monkeypatch.setattr(java, "_PARAPHRASES", table)
    monkeypatch.setattr("pycocoevalcap.meteor.meteor.__file__", str(folder / "meteor.py"))


@pytest.mark.usefixtures("java_on_path", "few_paraphrases")
def test_meteor_equals_pycocoevalcap(more_words: Words, tmp_path: Path) -> None:
    """By the paraphrases of these references, the scores are those of the jar, which reads all. One caption is a copy
    of its reference, which the jar treats apart; the last has all six words in three chunks:
    1 - 0.60 * (3 / 6) ** 0.20."""
    references, candidates = as_coco(more_words)
    score, segments = Meteor().compute_score(references, candidates)
    images = {str(number): texts for number, texts in references.items()}
    assert 0 < write_paraphrases(tmp_path, images) < 2000
    named = [Caption(str(number), text) for number, (text,) in candidates.items()]
    table = find_paraphrases(tmp_path, images)
    measure = measure_of(java.meteor_statistics(named, more_words[1], paraphrases=table))
    assert measure.value == pytest.approx(score, abs=1e-12)
    assert measure.per_image == pytest.approx(segments, abs=1e-12)
    assert segments[-2:] == pytest.approx([1, 0.47767], abs=1e-5)
    assert meteor_of(np.array([3.0, 4.0, 1.0, 1.0, *[0.0] * 19])) == 0, "without a match"


def test_meteor_by_hand() -> None:
    """4 and 5 words, of them 1 and 2 function words; 2 content words and a function word match exactly, 1 by stem.

    P = (0.75 * 2.6 + 0.25) / (0.75 * 3 + 0.25), R = (0.75 * 2.6 + 0.25) / (0.75 * 3 + 0.25 * 2): 0.88 and 0.8; the
    penalty of 2 chunks in 4 words is 0.6 * 0.5 ** 0.2.
    """
    counts = np.array([4.0, 5, 1, 2, *(2, 2, 1, 1), *(1, 1, 0, 0), *[0] * 8, 2, 4, 4])
    expected = 0.88 * 0.8 / (0.85 * 0.88 + 0.15 * 0.8) * (1 - 0.6 * 0.5**0.2)
    assert float(meteor_of(counts)) == pytest.approx(expected, abs=1e-12)


WORDS = [["a dog runs", "a brown dog runs fast"], ["two cats"], ["a man", "a man sits down", "the man on a bench"]]
REFERENCES = [["a brown dog runs", "the dog runs fast"], ["two cats sleep", "cats"], ["a man on a bench", "man sits"]]


def test_a_choice_scores_as_its_captions_do():
    candidates = CandidateScores(WORDS, dict(enumerate(REFERENCES)))
    for choice in ([0, 0, 0], [1, 0, 2], [0, 0, 1]):
        texts = [of_image[rank] for of_image, rank in zip(WORDS, choice, strict=True)]
        assert candidates.of_choice(np.array(choice)) == cider(texts, REFERENCES).value
    assert [len(scores) for scores in candidates.per_candidate] == [2, 1, 3]
    assert (
        candidates.per_candidate[2][1] == cider(["a dog runs", "two cats", "a man sits down"], REFERENCES).per_image[2]
    )


IMAGES = {"1": ["a dog runs", "the dog"], "2": ["two cats"]}
ENTRY = "0.5\na dog\nthe hound\n"


@pytest.fixture
def entries(fake_java: Callable[[str], None], tmp_path: Path) -> Callable[[str], None]:
    """METEOR's program writes these bytes, compressed, and as many of the compressed ones as are kept."""

    def give(text: str, *, cut: int | None = None) -> None:
        stored = tmp_path / "stored.gz"
        stored.write_bytes(gzip.compress(text.encode())[:cut])
        fake_java(f'cp {stored} "$8"')

    return give


def test_paraphrases_of_other_references_are_refused(entries: Callable[[str], None], tmp_path: Path) -> None:
    entries(ENTRY)
    assert write_paraphrases(tmp_path, IMAGES) == 1
    assert find_paraphrases(tmp_path, IMAGES) == tmp_path / "table.gz"
    with pytest.raises(UserError, match=r"of other references.*card\.json"):
        find_paraphrases(tmp_path, IMAGES | {"2": ["two dogs"]})
    whole = (tmp_path / "table.gz").read_bytes()
    (tmp_path / "table.gz").write_bytes(whole[:-1])
    with pytest.raises(UserError, match=r"missing or damaged .*table\.gz"):
        find_paraphrases(tmp_path, IMAGES)
    (tmp_path / "table.gz").unlink()
    with pytest.raises(UserError, match=r"missing or damaged .*table\.gz"):
        find_paraphrases(tmp_path, IMAGES)


@pytest.mark.parametrize(("text", "cut"), [(ENTRY * 2, 30), (ENTRY + "0.5\n", None)])
def test_half_a_table_is_not_kept(entries: Callable[..., None], tmp_path: Path, text: str, cut: int | None) -> None:
    entries(text, cut=cut)
    with pytest.raises(UserError, match=r"half a table .*table\.gz.*disk full"):
        write_paraphrases(tmp_path, IMAGES)
    assert not (tmp_path / "card.json").exists()
    assert not (tmp_path / "table.gz").exists()
