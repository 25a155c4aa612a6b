"""Metrics against human judgments in the formats of Flickr8k: the files, the correlations and the command."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vitcapr.commands import judge
from vitcapr.errors import UserError
from vitcapr.formats.scores import Judgment, read_crowdflower, read_expert
from vitcapr.metrics.judgments import agreement, candidates_of

CAPTIONS = {
    "dog.jpg#0": "a brown dog runs across the green grass",
    "dog.jpg#1": "the dog is running on grass",
    "cat.jpg#0": "a black cat sleeps on the red chair",
    "cat.jpg#1": "the cat lies on a chair",
    "man.jpg#0": "a man rides a bike on the street",
    "man.jpg#1": "the dog runs on the grass",
}
"""The last is a good caption of another image."""


def tau_by_pairs(x: np.ndarray, y: np.ndarray, variant: str) -> float:
    """Kendall's tau counted pair by pair."""
    n = len(x)
    signs = [np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]) for i in range(n) for j in range(i)]
    apart = [sum(v[i] != v[j] for i in range(n) for j in range(i)) for v in (x, y)]
    if variant == "b":
        return float(sum(signs) / np.sqrt(apart[0] * apart[1]))
    m = min(len(set(x)), len(set(y)))
    return float(2 * sum(signs) / (n**2 * (m - 1) / m))


def test_tau_is_counted_over_all_ratings() -> None:
    judgments = [
        Judgment("a", "x#0", (1, 2, 1)),
        Judgment("a", "y#0", (3, 4, 4)),
        Judgment("b", "x#0", (2, 2, 3)),
        Judgment("c", "y#0", (4, 1, 4)),
    ]
    scores = np.array([0.1, 0.8, 0.4, 0.4])
    found = agreement({"cider": scores}, judgments, samples=50, seed=0).set_index("variant")
    ratings = np.concatenate([one.ratings for one in judgments])
    for variant in ("b", "c"):
        assert found.loc[variant, "tau"] == pytest.approx(tau_by_pairs(np.repeat(scores, 3), ratings, variant))
        assert found.loc[variant, "low"] <= found.loc[variant, "tau"] <= found.loc[variant, "high"]
    assert found["n"].tolist() == [12, 12]
    assert agreement({"cider": scores}, judgments, samples=0, seed=0)["low"].isna().all()


def test_candidates_among_the_references_are_left_out() -> None:
    judgments = [Judgment("dog.jpg", name, (4.0,)) for name in ("dog.jpg#1", "cat.jpg#0", "man.jpg#1")]
    found = candidates_of(judgments, CAPTIONS, {name: name.partition("#")[0] for name in CAPTIONS})
    assert found.left_out == 1
    assert list(found.captions.values()) == [CAPTIONS["cat.jpg#0"], CAPTIONS["man.jpg#1"]]
    assert found.references["0"] == [CAPTIONS["dog.jpg#0"], CAPTIONS["dog.jpg#1"]]
    with pytest.raises(UserError, match="every candidate"):
        candidates_of(judgments[:1], CAPTIONS, {"dog.jpg#1": "dog.jpg"})


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
        path.write_text(contents[name])
    return paths


def test_both_formats_are_read(files: dict[str, Path]) -> None:
    assert read_expert(files["expert"])[0] == Judgment("dog.jpg", "man.jpg#1", (4.0, 4.0, 3.0))
    assert [one.ratings for one in read_crowdflower(files["crowdflower"])] == [(1.0,), (0.0,), (0.33333,)]


@pytest.mark.parametrize(
    "line", ["dog.jpg\tcat.jpg#0\t1\t1", "dog.jpg\tcat.jpg#0\t1\t1\t5", "dog.jpg\tcat.jpg#0\tx\t1\t1", "dog.jpg", ""]
)
def test_other_files_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "expert.txt"
    path.write_text(line)
    with pytest.raises(UserError, match="three ratings"):
        read_expert(path)


def test_the_command(files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "taus.csv"
    judge.main(files["captions"], expert=files["expert"], metrics="bleu,cider,rouge_l", samples=20, output=output)
    printed = capsys.readouterr().out
    assert "4 candidates; 1 left out" in printed
    assert "CIDEr" in printed
    table = pd.read_csv(output).set_index(["metric", "variant"])
    # The one good candidate has the highest ratings and the highest scores.
    assert table.loc[("bleu_1", "c"), "tau"] > 0
    assert (table["n"] == 12).all()
    judge.main(files["captions"], crowdflower=files["crowdflower"], metrics="rouge_l", samples=0)
    assert "3 candidates; 0 left out" in capsys.readouterr().out


def test_mistakes(files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--expert FILE or --crowdflower FILE"):
        judge.main(files["captions"])
    with pytest.raises(UserError, match="not a line"):
        judge.main(files["expert"], expert=files["expert"])
    short = tmp_path / "short.txt"
    short.write_text("dog.jpg#0\ta dog\n")
    with pytest.raises(UserError, match="no caption of the corpus is called 'man"):
        judge.main(short, expert=files["expert"])
