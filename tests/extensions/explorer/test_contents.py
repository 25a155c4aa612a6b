"""The data of the explorer, from a small experiment whose numbers are known."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.extensions.explorer.experiment import (
    BEAM,
    CIDER,
    IDS,
    IMAGES,
    RERANKED,
    TRUTH,
    embed,
    read_results,
    write_experiment,
)
from vitcapr.errors import UserError
from vitcapr.extensions.explorer.contents import Contents
from vitcapr.extensions.explorer.results import read_experiment
from vitcapr.extensions.explorer.spaces import label_map, nearest, place_on_map
from vitcapr.formats.caption_audit import write_audit
from vitcapr.report.attended import LEVELS


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_experiment(tmp_path_factory.mktemp("results") / "toy")


@pytest.fixture(scope="module")
def contents(results: Path) -> Contents:
    return Contents([read_results(results)], "test")


def values(contents: Contents, name: str) -> list[Any]:
    place = [column.name for column in contents.columns].index(name)
    return list(contents.images()["values"][place])


def details(contents: Contents, system: str) -> list[Any]:
    return list(dict(contents.details())[f"details-{list(contents.systems).index(system)}-0"]["images"])


def test_captions_and_references_by_image(contents: Contents) -> None:
    images = contents.images()
    assert images["ids"] == IDS
    assert images["captions"] == [list(BEAM), list(BEAM), list(RERANKED)]
    assert images["added"] == [None, None, [[7], [], [], [], [], []]]  # "white" for "black"
    references = images["references"]
    assert references["image"] == np.repeat(np.arange(IMAGES), 2).tolist()
    assert references["text"][:2] == [f"{TRUTH[0]}.", f"there is {TRUTH[0]}."]
    assert references["language"] is None


def test_scores_are_those_of_tables(contents: Contents) -> None:
    assert values(contents, "attention, beam:cider") == pytest.approx([100 * value for value in CIDER["beam"]])
    assert values(contents, "attention, reranked:changed") == [1, 0, 0, 0, 0, 0]
    assert values(contents, "attention, beam:log_prob") == [-0.69] * IMAGES
    assert [one["text"] for one in contents.overview()["systems"][0]["scores"]] == ["179.2", "50.0"]


def test_wrong_claims_are_counted_and_told(contents: Contents) -> None:
    assert values(contents, "attention, beam:wrong_claims") == [1, 0, 0, 0, 1, 0]
    assert values(contents, "attention, beam:wrong_colors") == [1, 0, 0, 0, 0, 0]
    wrong = [claim for claim in details(contents, "attention, beam")[0]["claims"] if not claim[3]]
    assert wrong == [["colors", "black", "white", False, (7,)]]
    places = contents.images()["wrong"][list(contents.systems).index("attention, beam")]
    assert [places[0], places[1], places[4]] == [[(7, "in truth white")], [], [(0, "in truth three")]]
    relation = next(claim for claim in details(contents, "attention, beam")[0]["claims"] if claim[0] == "relations")
    assert relation[1:4] == ["ball left house", "ball left house", True]


def test_ranks_of_true_matches(contents: Contents) -> None:
    # For image 0, the captions of image 1 (cosine 0.8) tie with its own; ties count as wrong.
    assert values(contents, "dual:i2t")[0] == 3
    assert values(contents, "dual:t2i") == [1, 2, 1, 1, 1, 1]


def test_suspicion_of_the_worst_reference(results: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(results, tmp_path / "toy")
    shutil.rmtree(folder / "captions")
    shutil.rmtree(folder / "embeddings")
    table = pd.DataFrame({"image_id": np.repeat([*IDS[1:], "train"], 2), "suspicion": np.arange(12) / 10, "rank": 1})
    table = table.assign(caption_id=table.index.astype(str), split="", p=0, wrong=table["suspicion"] / 2, odd="")
    write_audit(folder / "audits/whole/audit.parquet", [table.assign(better_image="", better_caption="")])
    contents = Contents([read_results(folder)], "test")
    assert values(contents, "audit whole:suspicion") == [None, 0.1, 0.3, 0.5, 0.7, 0.9]
    assert values(contents, "audit whole:wrong") == pytest.approx([None, 0.05, 0.15, 0.25, 0.35, 0.45], abs=0.011)


def test_neighbours(contents: Contents) -> None:
    found = dict(contents.neighbours())["neighbours-0-0"]
    assert found["references"]["2"] == {
        "images": [[0, 0.8], [1, 0.6], *found["references"]["2"]["images"][2:]],
        "own": [1, 0.6],
        "rank": 2,
    }
    image = found["images"][1]
    assert image["own"][1] == 0.6
    assert image["own"][0] in (2, 3)
    assert all(other != 1 for other, _ in image["images"])


def test_captions_of_systems_in_a_space(results: Path, contents: Contents) -> None:
    embedded = Contents([read_results(results)], "test", embed)
    assert embedded.overview()["spaces"][0]["written"] == list(embedded.systems)
    assert values(embedded, "attention, beam:rank@dual") == [1, 1, 1, 1, 2, 1]
    found = dict(embedded.written_neighbours())["written-0-0-0"]["images"][4]
    assert found["images"][:2] == [[0, 0.8], [4, 0.6]]
    assert (found["own"], found["rank"]) == ([4, 0.6], 2)
    assert contents.overview()["spaces"][0]["written"] == []
    assert dict(contents.written_neighbours()) == {}


def test_a_system_without_a_caption_of_an_image_has_no_ranks(results: Path) -> None:
    one = read_results(results)
    greedy = next(system for system in one.systems if system.decoding == "greedy")
    part = replace(greedy, captions={image: caption for image, caption in greedy.captions.items() if image != "i3"})
    contents = Contents([replace(one, systems=[part])], "test", embed)
    assert contents.written == {"dual": {}}
    assert details(contents, "attention, greedy")[3] is None


def test_attention_of_a_word(contents: Contents) -> None:
    first = details(contents, "attention, beam")[0]["attention"]
    # A third of the largest is the 21st of 63 steps.
    assert first["weights"][0] == f"{LEVELS[21]}{LEVELS[0] * 4}{LEVELS[63]}"
    assert first["grid"] == [2, 3]
    assert first["peaks"][0] == 4.5


def test_equal_words_of_a_captioner_have_the_stored_attention(contents: Contents) -> None:
    beam = list(contents.systems).index("attention, beam")
    shown = details(contents, "attention, reranked")
    assert not {"attention", "attention_of"} & set(shown[0])
    assert shown[1]["attention_of"] == beam
    assert [one["attention_of"] for one in details(contents, "attention, greedy")] == [beam] * IMAGES


def test_two_experiments_side_by_side(results: Path, tmp_path: Path) -> None:
    again = shutil.copytree(results, tmp_path / "other")
    both = Contents([read_results(folder) for folder in (results, again)], "test")
    assert [one["name"] for one in both.overview()["systems"]][::3] == ["toy attention, beam", "other attention, beam"]
    assert len(both.images()["ids"]) == IMAGES
    assert len(both.images()["references"]["text"]) == 2 * IMAGES


def test_other_pictures_of_the_same_ids_are_refused(results: Path, tmp_path: Path) -> None:
    other = write_experiment(tmp_path / "other", shade=200)
    with pytest.raises(UserError, match="image 'i0' of other is another picture than that of toy"):
        Contents([read_results(folder) for folder in (results, other)], "test").images()


def test_what_was_not_made_is_left_out(results: Path, tmp_path: Path) -> None:
    part = shutil.copytree(results, tmp_path / "part")
    for folder in ("metrics", "comparisons"):
        shutil.rmtree(part / folder)
    for made in ("attention.npz", "claims.json"):
        for file in part.glob(f"captions/attention/*/test/{made}"):
            file.unlink()
    contents = Contents([read_results(part)], "test")
    overview = contents.overview()
    assert overview["spaces"] == []
    assert {column["name"].partition(":")[2] for column in overview["columns"]} == {"log_prob"}
    assert set(details(contents, "attention, beam")[0]) == {"tokens", "log_probs", "numbers", "candidates"}
    json.dumps([contents.images(), dict(contents.neighbours()), dict(contents.maps())], allow_nan=False)


def test_mistakes_are_one_line(results: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        read_experiment(tmp_path / "nothing", "test")
    with pytest.raises(UserError, match=r"no such file .*manifest\.json"):
        read_experiment(tmp_path, "test")
    with pytest.raises(UserError, match="there is no split 'tset'"):
        read_experiment(results, "tset")
    with pytest.raises(UserError, match=r"no captions and no embeddings of the split validation .*; it has .* test"):
        read_experiment(results, "validation")


def test_the_nearest_are_those_of_the_whole_product() -> None:
    random = np.random.default_rng(0)
    queries, pool = (random.normal(size=(count, 8)).astype(np.float32) for count in (700, 40))
    places, _ = nearest(queries, pool, 3)
    assert (places == np.argsort(-(queries @ pool.T), axis=1, kind="stable")[:, :3]).all()
    assert nearest(queries[:1], queries[:1], without_itself=True)[0].shape == (1, 0)


def test_a_map_keeps_neighbours_together() -> None:
    random = np.random.default_rng(0)
    clusters = np.repeat(np.eye(3, 16), 20, axis=0) + 0.01 * random.normal(size=(60, 16))
    places = place_on_map(clusters.astype(np.float32))
    assert places is not None
    assert places.min() >= 0
    assert places.max() <= 1
    middles = [places[20 * number : 20 * number + 20].mean(axis=0) for number in range(3)]
    spread = max(np.linalg.norm(places[20 * n : 20 * n + 20] - middles[n], axis=1).max() for n in range(3))
    assert min(np.linalg.norm(middles[a] - middles[b]) for a, b in ((0, 1), (0, 2), (1, 2))) > 2 * spread
    assert place_on_map(np.ones((30, 4), np.float32)) is None
    assert place_on_map(np.eye(3, dtype=np.float32)) is None


def test_labels_of_a_map_are_words_that_its_parts_have_more_often() -> None:
    places = np.random.default_rng(0).normal(scale=0.01, size=(60, 2)) + np.repeat([[0.2, 0.5], [0.8, 0.5]], 30, axis=0)
    texts = ["a red dog is on the grass"] * 30 + ["a blue boat is on the sea"] * 29 + [""]
    labels = sorted(label_map(places, texts))
    assert [words for *_, words in labels] == ["dog grass", "blue boat"]
    assert [place for *place, _ in labels] == [pytest.approx(each, abs=0.01) for each in ([0.2, 0.5], [0.8, 0.5])]
    assert label_map(places[:30], texts[:30]) == label_map(places, [""] * 60) == []
