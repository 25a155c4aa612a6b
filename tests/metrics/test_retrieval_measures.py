"""Scores of retrieval from ranks, and the command that makes them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.formats.embeddings import QueryBankWeight, read_embeddings
from vitcapr.formats.scores import RankFile, Ranks
from vitcapr.metrics import retrieval_measures as retrieval
from vitcapr.metrics.bootstrap import interval, mean_measure, ratio_measure
from vitcapr.metrics.query_bank import corrected
from vitcapr.metrics.ranks import CaptionOwners, rank_matches
from vitcapr.metrics.retrieval_scoring import searched
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.ablate import ablate
from vitcapr.stages.score_retrieval import score_retrieval
from vitcapr.stages.select_language import select_language

CAPTION_IMAGE = [0, 0, 1, 2, 2, 2]
OWNERS = CaptionOwners.of(CAPTION_IMAGE, 3)
RANKS = Ranks(np.array([1, 7, 4], np.int32), np.array([1, 3, 6, 1, 11, 2], np.int32), np.array([1, 0, 1 / 6]))


def test_scores_by_hand() -> None:
    recalls = {f"i2t_recall_{k}": hits / 3 for k, hits in ((1, 1), (5, 2), (10, 3))}
    recalls |= {f"t2i_recall_{k}": hits / 6 for k, hits in ((1, 2), (5, 4), (10, 5))}
    others = {"i2t_mean_rank": 4, "t2i_mean_rank": 4, "i2t_map_r": (1 + 1 / 6) / 3, "t2i_map_r": 2 / 6}
    found = {name: measure.value for name, measure in retrieval.measures(RANKS, OWNERS).items()}
    assert found == pytest.approx({**recalls, **others, "rsum": sum(recalls.values())})
    assert retrieval.median_ranks([(RANKS, OWNERS)]) == {"i2t": 4, "t2i": 2.5}


def test_captions_are_resampled_with_their_image() -> None:
    """Drawn one by one the six captions would give a narrower interval."""
    owners = CaptionOwners.of(np.repeat(np.arange(50), 4), 50)
    ranks = np.repeat(np.random.default_rng(0).integers(1, 3, 50), 4).astype(np.int32)
    measure = retrieval.measures(Ranks(ranks[::4], ranks, np.zeros(50)), owners)["t2i_recall_1"]
    alone = interval(mean_measure(ranks == 1), 500, 0)
    found = interval(measure, 500, 0)
    assert found is not None
    assert alone is not None
    assert found == interval(mean_measure(ranks[::4] == 1), 500, 0)
    assert found.high - found.low > 1.5 * (alone.high - alone.low)


def test_median_interval_equals_recomputing_it_for_every_draw() -> None:
    random = np.random.default_rng(5)
    draws = [random.integers(0, 3, 3) for _ in range(200)]
    captions = [[1, 3], [6], [1, 11, 2]]
    expected = {
        "i2t": [np.median([RANKS.i2t[image] for image in draw]) for draw in draws],
        "t2i": [np.median([rank for image in draw for rank in captions[image]]) for draw in draws],
    }
    found = retrieval.median_intervals([(RANKS, OWNERS)], 200, 5)
    for direction, values in expected.items():
        assert found[direction] == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])))


def test_mean_of_folds_is_not_the_mean_of_all() -> None:
    folds = [ratio_measure([1, 1], [1, 1]), ratio_measure([0, 0, 0], [2, 2, 2])]
    measure = retrieval.mean_of_folds(folds)
    assert measure.value == 0.5
    assert len(measure.statistics) == 5


def test_each_fold_is_a_separate_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five folds of two images of eleven; the last image is in none."""
    monkeypatch.setattr(retrieval, "FOLD_IMAGES", 2)
    random = np.random.default_rng(0)
    images, captions = random.normal(size=(11, 3)), random.normal(size=(22, 3))
    owners = CaptionOwners.of(np.repeat(np.arange(11), 2), 11)
    folds = retrieval.rank_folds(images, captions, owners)
    assert len(folds) == 5
    for fold, (ranks, own) in enumerate(folds):
        alone = rank_matches(images[2 * fold :][:2], captions[4 * fold :][:4], [0, 0, 1, 1])
        assert ranks.t2i.tolist() == alone.t2i.tolist()
        assert own.captions_each.tolist() == [2, 2]
    assert retrieval.rank_folds(images[:9], captions[:18], CaptionOwners.of(np.repeat(np.arange(9), 2), 9)) == []
    medians = np.mean([np.median(ranks.i2t) for ranks, _ in folds])
    assert retrieval.median_ranks(folds)["i2t"] == medians
    bounds = retrieval.median_intervals(folds, 100, 0)["i2t"]
    assert bounds.low <= medians <= bounds.high


def test_chance_by_hand() -> None:
    """Six captions: none of two is among the first five of a random order in (4 choose 5) = 0 of the cases."""
    i2t, t2i = [(2 / 6 + 1 / 6 + 3 / 6) / 3, (1 + 5 / 6 + 1) / 3, 1], [1 / 3, 1, 1]
    names = [f"{direction}_recall_{k}_chance" for direction in ("i2t", "t2i") for k in retrieval.DEPTHS]
    assert retrieval.chance(OWNERS) == pytest.approx(dict(zip(names, i2t + t2i, strict=True)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three test images with two English captions each and one in German, and an image of another split between."""
    names = ["a.png", "t.png", "b.png", "c.png"]
    splits = dict.fromkeys(names, "test") | {"t.png": "train"}
    captions = [(name, language, "a dog") for name in names for language in ("en", "en", "de")]
    write_data_set(tmp_path, splits, captions)
    write_embeddings(tmp_path)
    return tmp_path


def write_embeddings(folder: Path, name: str = "embeddings.npz", **changed: np.ndarray) -> None:
    arrays = {
        "images": np.eye(3, dtype=np.float32),
        "captions": np.eye(3, dtype=np.float32)[[0, 1, 1, 1, 2, 0]],
        "image_row": np.array([0, 2, 3], np.int32),
        "caption_row": np.array([0, 1, 6, 7, 9, 10], np.int32),
        "caption_image": np.array([0, 0, 1, 1, 2, 2], np.int32),
    }
    np.savez(folder / name, allow_pickle=False, **(arrays | changed))


def run(folder: Path, name: str = "embeddings.npz", **corrected_by: Path) -> dict:
    run_stage(
        score_retrieval,
        embeddings=folder / name,
        manifest=folder / "manifest.json",
        split="test",
        metrics=folder / "metrics.json",
        ranks=folder / f"{Path(name).stem}-ranks.npz",
        model="dual",
        settings={"metrics": {"bootstrap_samples": 50}},
        **corrected_by,
    )
    return json.loads((folder / "metrics.json").read_text())


def test_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = run(folder)
    assert (content["dataset"], content["split"], content["model"], content["decoding"]) == ("toys", "test", "dual", "")
    assert content["protocol"] == (
        "pool:3images,6captions|captions:2|i2t:any-of-2|ties:pessimistic|scores:float32|split:test|lang:en"
        "|ci:95,samples=50,seed=0"
    )
    metrics = content["metrics"]
    # The captions stand at 1, 3 (0 like the third image's, 1 for the second's), 1, 1, 1, 3.
    assert metrics["i2t_recall_1"]["value"] == pytest.approx(1 / 3)
    assert metrics["t2i_recall_1"]["value"] == pytest.approx(4 / 6)
    assert metrics["t2i_recall_1"]["low"] < 4 / 6
    assert metrics["t2i_median_rank"]["value"] == 1
    assert metrics["i2t_recall_1_chance"] == {"value": pytest.approx(1 / 3), "low": None, "high": None, "n": 3}
    assert metrics["image_variance"]["value"] == pytest.approx(2 / 9)
    assert "i2t_recall_1_1k" not in metrics
    ranks = RankFile.read(folder / "embeddings-ranks.npz")
    assert ranks.ranks.t2i.tolist() == [1, 3, 1, 1, 1, 3]
    assert ranks.image_row.tolist() == [0, 2, 3]
    assert "image to text: R@1/5/10 33.3 / 100.0 / 100.0, median rank 2" in capsys.readouterr().err


def test_command_with_a_query_bank(folder: Path) -> None:
    write_embeddings(folder, "train.npz")
    weight = QueryBankWeight(
        weight=0.5, curve=[], inverse_temperature=10.0, images=3, captions=6, chosen_by="rsum on validation"
    )
    weight.write(folder / "weight.json")

    content = run(folder, query_bank=folder / "train.npz", bank_weight=folder / "weight.json")
    assert (
        "|query-bank:train 3images 6captions,inverse-temperature=10,weight=0.5 chosen on validation|ci:"
        in content["protocol"]
    )
    assert content["metrics"]["image_variance"]["value"] == pytest.approx(2 / 9)
    bank = read_embeddings(folder / "train.npz")
    found = corrected(bank, bank, weight)
    expected = rank_matches(found.images, found.captions, found.caption_image)
    assert RankFile.read(folder / "embeddings-ranks.npz").ranks.t2i.tolist() == expected.t2i.tolist()
    with pytest.raises(UserError, match="give query_bank and bank_weight"):
        run(folder, query_bank=folder / "train.npz")


def test_a_split_of_thousands_is_also_scored_in_folds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "FOLDS", 3)
    monkeypatch.setattr(retrieval, "FOLD_IMAGES", 1)
    content = run(folder)
    assert content["metrics"]["i2t_recall_1_1k"]["value"] == 1
    assert content["metrics"]["t2i_median_rank_1k"]["value"] == 1
    assert content["metrics"]["i2t_map_r_1k"]["n"] == 3
    assert "|1k:mean of 3 folds|" in content["protocol"]


@pytest.mark.parametrize(
    ("changed", "captions"),
    [
        ({"image_row": np.array([0, 1, 2], np.int32)}, 6),
        ({"caption_row": np.array([0, 1, 6, 7, 9, 3], np.int32)}, 6),
        ({"caption_row": np.array([0, 1, 6, 7, 9, 11], np.int32)}, 9),
        ({"caption_image": np.array([0, 0, 0, 1, 2, 2], np.int32)}, 6),
    ],
)
def test_another_pool_is_refused(folder: Path, changed: dict[str, np.ndarray], captions: int) -> None:
    write_embeddings(folder, **changed)
    with pytest.raises(UserError, match=f"not of the 3 images and {captions} captions of the split 'test'"):
        run(folder)
    assert not (folder / "metrics.json").exists()


def test_a_picture_without_a_caption_in_the_language_is_in_no_pool(tmp_path: Path) -> None:
    """Every caption points exactly at its picture; the second picture has a Chinese caption only."""
    languages = [("a", "en"), ("a", "zh"), ("b", "zh"), ("c", "en"), ("c", "en")]
    write_data_set(tmp_path, dict.fromkeys("abc", "test"), [(*caption, "dog") for caption in languages])
    owner = np.array([0, 0, 1, 2, 2], np.int32)
    rows = {"image_row": np.arange(3, dtype=np.int32), "caption_row": np.arange(5, dtype=np.int32)}
    write_embeddings(tmp_path, captions=np.eye(3, dtype=np.float32)[owner], caption_image=owner, **rows)
    files = {"all_languages": tmp_path / "embeddings.npz", "manifest": tmp_path / "manifest.json"}
    run_stage(select_language, language="en", embeddings=tmp_path / "en.npz", **files)
    with np.load(tmp_path / "en.npz") as kept:
        assert kept["image_row"].tolist() == [0, 2]
        assert kept["caption_row"].tolist() == [0, 3, 4]
        assert kept["caption_image"].tolist() == [0, 1, 1]
    found = run(tmp_path, "en.npz")
    assert found["protocol"].startswith("pool:2images,3captions|")
    assert "|lang:en" in found["protocol"]
    assert (found["metrics"]["t2i_recall_1"]["value"], found["metrics"]["t2i_recall_1"]["n"]) == (1, 2)


def test_an_ablation_is_the_difference_on_the_same_images(folder: Path) -> None:
    run(folder)
    write_embeddings(folder, "better.npz", captions=np.repeat(np.eye(3, dtype=np.float32), 2, axis=0))
    run(folder, "better.npz")
    files = {}
    for model, name in (("plain", "embeddings"), ("full", "better"), ("same", "better")):
        files[model] = folder / model / "test" / "ranks.npz"
        files[model].parent.mkdir(parents=True)
        shutil.copy(folder / f"{name}-ranks.npz", files[model])
    settings = {"pairs": [["full", "plain"], ["full", "same"]], "metrics": {"bootstrap_samples": 200}}
    written = {"numbers": folder / "ablations.csv", "table": [folder / "ablations.md"]}
    run_stage(ablate, ranks=list(files.values()), settings=settings, **written)
    numbers = pd.read_csv(folder / "ablations.csv").set_index(["model", "metric"])
    one = numbers.loc["plain", "t2i_recall_1"]
    assert one["of_whole"] - one["of_model"] == pytest.approx(1 / 3)
    assert one["difference"] == pytest.approx(-1 / 3)
    assert one["low"] <= -1 / 3 <= one["high"] <= 0
    assert numbers.loc["same", "rsum"][["difference", "low", "high", "p_value"]].tolist() == [0, 0, 0, 1]
    assert "| plain | " in (folder / "ablations.md").read_text()
    with pytest.raises(UserError, match="no ranks of 'plain'"):
        run_stage(ablate, ranks=[files["full"]], settings=settings, **written)


def test_what_was_searched_is_read_from_both_kinds_of_protocol() -> None:
    whole = "pool:1000images,5000captions|captions:5|i2t:any-of-5|ties:pessimistic"
    assert searched([whole, whole]) == {
        "i2t": "1,000 images among 5,000 captions",
        "t2i": "5,000 captions among 1,000 images",
    }
    pools = "i2t:1000images of 10000captions,any own caption|t2i:5000captions of 1000images|ties:pessimistic"
    assert searched([pools]) == {
        "i2t": "1,000 images among 10,000 captions",
        "t2i": "5,000 captions among 1,000 images",
    }
    assert searched([whole, pools])["i2t"].splitlines() == [searched([one])["i2t"] for one in (whole, pools)]
    assert searched(["tok:ptb"])["t2i"] == "pool unknown"
