"""Metrics against human judgments in the formats of Flickr8k: the files, the correlations and the command."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from vitcapr.errors import UserError
from vitcapr.extensions.preferences.commands import judge
from vitcapr.extensions.preferences.judgments import (
    Agreement,
    Corpus,
    Judgment,
    agreement,
    check_judgments,
    drop_candidates,
    drop_references,
    read_crowdflower,
    read_expert,
    retriever_scores,
)

CAPTIONS = {
    "dog.jpg#0": "a brown dog runs across the green grass",
    "dog.jpg#1": "the dog is running on grass",
    "cat.jpg#0": "a black cat sleeps on the red chair",
    "cat.jpg#1": "the cat lies on a chair",
    "man.jpg#0": "a man rides a bike on the street",
    "man.jpg#1": "the dog runs on the grass",
}
"""The last is a good caption of another image."""


def test_tau_is_counted_over_all_ratings() -> None:
    judgments = [
        Judgment("a", "x#0", (1, 2, 1)),
        Judgment("a", "y#0", (3, 4, 4)),
        Judgment("b", "x#0", (2, 2, 3)),
        Judgment("c", "y#0", (4, 1, 4)),
    ]
    scores = np.array([0.1, 0.8, 0.4, 0.4])
    other = np.array([0.5, 0.1, 0.3, 0.9])
    found = agreement({"cider": scores, "meteor": other}, judgments, samples=50, seed=0)
    taus, ratings = found.taus.set_index(["metric", "variant"]), np.concatenate([one.ratings for one in judgments])
    for variant in ("b", "c"):
        tau, low, high, n = taus.loc[("cider", variant)]
        assert tau == pytest.approx(kendalltau(np.repeat(scores, 3), ratings, variant=variant).statistic)
        assert low <= tau <= high
        assert n == 12
        (apart,) = differences_from(found, "meteor", variant).to_dict("records")
        assert apart["difference"] == pytest.approx(
            tau - kendalltau(np.repeat(other, 3), ratings, variant=variant).statistic
        )
    with pytest.raises(UserError, match="the 4 ratings are all 2, so no metric can agree"):
        agreement({"cider": scores}, [one._replace(ratings=(2.0,)) for one in judgments], samples=0, seed=0)
    plain = agreement({"cider": scores, "meteor": other}, judgments, samples=0, seed=0)
    assert plain.taus["low"].isna().all()
    assert set(plain.differences["verdict"]) == {"not tested"}


def test_the_difference_of_two_metrics_is_paired() -> None:
    """Both metrics are drawn on the same images: a metric that orders as another does has no difference in any draw,
    and one that is right where the other is wrong is better in all."""
    judgments = [Judgment(f"{image}", f"{number}", (number,)) for image in range(8) for number in (1, 2, 3)]
    right = np.tile([0.1, 0.2, 0.3], 8)
    found = agreement({"a": right, "b": 2 * right, "c": -right}, judgments, samples=99, seed=0)
    rows = differences_from(found, "a", "b").set_index("metric")
    assert rows.loc["b", ["difference", "low", "high", "p_value"]].tolist() == [0, 0, 0, 1]
    assert rows.loc["c", "verdict"] == "lower"
    assert rows.loc["c", ["difference", "p_value"]].tolist() == pytest.approx([-2, 2 / 100])


def differences_from(agreements: Agreement, other: str, variant: str) -> pd.DataFrame:
    frame = agreements.differences
    return frame[(frame["other"] == other) & (frame["variant"] == variant)]


CORPUS = Corpus(
    CAPTIONS,
    {image: [CAPTIONS[f"{image}#{number}"] for number in range(2)] for image in ("dog.jpg", "cat.jpg", "man.jpg")},
)


def test_experts_judge_no_references() -> None:
    judgments = [Judgment("dog.jpg", name, (4.0,)) for name in ("dog.jpg#1", "cat.jpg#0", "man.jpg#1")]
    found = drop_candidates(judgments, CORPUS)
    assert found.changed == "1 left out because they are references of their image"
    assert list(found.captions.values()) == [CAPTIONS["cat.jpg#0"], CAPTIONS["man.jpg#1"]]
    assert found.references["0"] == [CAPTIONS["dog.jpg#0"], CAPTIONS["dog.jpg#1"]]
    with pytest.raises(UserError, match="every candidate"):
        drop_candidates(judgments[:1], CORPUS)


def test_what_the_crowd_judged_is_no_reference() -> None:
    judgments = [Judgment("dog.jpg", name, (1.0,)) for name in ("dog.jpg#1", "cat.jpg#0")]
    found = drop_references(judgments, CORPUS)
    assert found.changed == "1 references left out because they are judged"
    assert list(found.captions.values()) == [CAPTIONS["dog.jpg#1"], CAPTIONS["cat.jpg#0"]]
    assert list(found.references.values()) == [[CAPTIONS["dog.jpg#0"]]] * 2
    with pytest.raises(UserError, match="every reference"):
        drop_references([*judgments, Judgment("dog.jpg", "dog.jpg#0", (1.0,))], CORPUS)


def test_scores_of_a_retriever() -> None:
    """By hand: the images point along x; a candidate at 60 degrees has cosine 1/2, of weight 2.5 in CLIPScore."""
    judged = drop_candidates([Judgment("dog.jpg", name, (1.0,)) for name in ("cat.jpg#0", "man.jpg#1")], CORPUS)
    points = dict.fromkeys(CAPTIONS.values(), (0.0, 1.0))
    points |= {CAPTIONS["cat.jpg#0"]: (0.5, 0.75**0.5), CAPTIONS["man.jpg#1"]: (1.0, 0.0)}

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.array([points[text] for text in texts])

    found = retriever_scores(judged, embed, lambda images: np.tile((1.0, 0.0), (len(images), 1)))
    assert found["retriever"] == pytest.approx([1.25, 2.5])
    assert found["ref_retriever"] == pytest.approx([2 * 1.25 * 0.75**0.5 / (1.25 + 0.75**0.5), 0])


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    contents = {
        "captions": "".join(f"{name}\t{text}\n" for name, text in CAPTIONS.items()),
        "expert": "dog.jpg\tman.jpg#1\t4\t4\t3\ndog.jpg\tcat.jpg#0\t1\t1\t1\ncat.jpg\tdog.jpg#0\t1\t1\t2\n"
        "cat.jpg\tcat.jpg#1\t4\t4\t4\nman.jpg\tcat.jpg#1\t1\t2\t1\n",
        "crowdflower": "dog.jpg\tman.jpg#1\t1.0\t3\t0\ndog.jpg\tcat.jpg#0\t0\t0\t3\n"
        "cat.jpg\tdog.jpg#0\t0.33333\t1\t2\n",
    }
    paths = {name: tmp_path / f"{name}.txt" for name in contents}
    for name, path in paths.items():
        path.write_text(contents[name], encoding="utf-8-sig")
    return paths


def test_both_formats_are_read(files: dict[str, Path]) -> None:
    assert read_expert(files["expert"])[0] == Judgment("dog.jpg", "man.jpg#1", (4.0, 4.0, 3.0))
    assert [one.ratings for one in read_crowdflower(files["crowdflower"])] == [(1.0,), (0.0,), (0.33333,)]


def test_ratings_of_other_captions_stop() -> None:
    """A rated caption shares its only word with the references, or none of them."""
    captions = [f"w{row}" for row in range(2000)]
    references = [[f"w{row if row % 2 else row + 1}"] for row in range(2000)]
    ratings = [row % 2 for row in range(2000)]
    assert "judgments and captions belong together" in check_judgments(captions, references, ratings, "e.txt")
    drawn = np.random.default_rng(0).permutation(ratings).tolist()
    with pytest.raises(UserError, match=r"no better than chance.*e\.txt"):
        check_judgments(captions, references, drawn, "e.txt")
    assert "same similarity" in check_judgments(captions, references, [1] * 2000, "e.txt")


def test_damaged_lines_are_named(files: dict[str, Path]) -> None:
    files["expert"].write_bytes(files["expert"].read_bytes() + b"dog.jpg\t\xff\xfe\nman.jpg\n")
    with pytest.raises(UserError, match=r"2 of 7 lines are no judgments or damaged .*expert\.txt:6, the first"):
        read_expert(files["expert"])


@pytest.mark.parametrize(
    "line", ["dog.jpg\tcat.jpg#0\t1\t1", "dog.jpg\tcat.jpg#0\t1\t1\t5", "dog.jpg\tcat.jpg#0\tx\t1\t1", "dog.jpg", ""]
)
def test_other_files_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "expert.txt"
    path.write_text(line, encoding="utf-16")
    with pytest.raises(UserError, match="three ratings"):
        read_expert(path)


def test_the_command(files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "judged"
    judge.main(files["captions"], expert=files["expert"], metrics="bleu,cider,rouge_l", samples=20, output=output)
    printed = capsys.readouterr().out
    assert "4 candidates; 1 left out" in printed
    assert "CIDEr" in printed
    table = pd.read_csv(output / "taus.csv").set_index(["metric", "variant"])
    # The one good candidate has the highest ratings and the highest scores.
    assert table.loc[("bleu_1", "c"), "tau"] > 0
    assert (table["n"] == 12).all()
    assert len(pd.read_csv(output / "differences.csv")) == 2 * 6 * 5
    assert (output / "taus.png").stat().st_size > 1000
    assert '<img src="taus.png" alt="Agreement of metrics with human ratings"' in (output / "tables.html").read_text()
    judge.main(files["captions"], crowdflower=files["crowdflower"], metrics="rouge_l", samples=0)
    assert "3 candidates; 0 references left out" in capsys.readouterr().out


def test_mistakes(files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--expert FILE or --crowdflower FILE"):
        judge.main(files["captions"])
    with pytest.raises(UserError, match="--retriever and --photographs"):
        judge.main(files["captions"], expert=files["expert"], photographs=tmp_path)
    with pytest.raises(UserError, match="not a line"):
        judge.main(files["expert"], expert=files["expert"])
    short = tmp_path / "short.txt"
    short.write_text("dog.jpg#0\ta dog\n")
    with pytest.raises(UserError, match="no caption of the corpus is called 'man"):
        judge.main(short, expert=files["expert"])
