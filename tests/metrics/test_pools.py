"""Queries against pools, beside a ranking of each query on its own."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.data_sets import embeddings_of, write_data_set
from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.pair_files import Pools
from vitcapr.metrics.pools import joined, origin, rank_languages, rank_pools, rank_queries
from vitcapr.metrics.ranks import negatives_before
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.score_pools import score_pools

IMAGES, EACH = 12, 3


def embeddings() -> Embeddings:
    """Twelve images with three captions each, in few enough directions that scores tie; row 0 is of another split."""
    random = np.random.default_rng(0)
    owner = np.repeat(np.arange(IMAGES), EACH)
    images, captions = (random.integers(-1, 2, (number, 3)) for number in (IMAGES, IMAGES * EACH))
    found = embeddings_of(images, captions, owner)
    return found._replace(image_row=found.image_row + 1, caption_row=found.caption_row + 1)


POOLS = Pools(
    image_queries=np.array([2, 5, 9], "i4"),
    text_candidates=np.array([4, 5, 6, 13, 14, 15, 20, 21, 25, 26, 27, 36], "i4"),
    text_queries=np.array([1, 4, 6, 30], "i4"),
    image_candidates=np.array([1, 2, 3, 7, 8, 10, 12], "i4"),
)


def test_ranks_are_those_of_each_query_on_its_own() -> None:
    found = embeddings()
    ranked = rank_pools(found, POOLS)
    i2t, t2i = ranked["i2t"], ranked["t2i"]
    pool = POOLS.text_candidates - 1
    for query, rank in zip(POOLS.image_queries - 1, i2t.ranks, strict=True):
        scores, own = found.captions[pool] @ found.images[query], found.caption_image[pool] == query
        assert rank == 1 + (scores[~own] >= scores[own].max()).sum()
    pool = POOLS.image_candidates - 1
    for query, rank, picture in zip(POOLS.text_queries - 1, t2i.ranks, t2i.image, strict=True):
        scores, own = found.images[pool] @ found.captions[query], pool == found.caption_image[query]
        assert POOLS.image_candidates[picture] - 1 == found.caption_image[query]
        assert rank == 1 + (scores[~own] >= scores[own].max()).sum()
    assert (i2t.pool, t2i.pool) == (12, 7)
    assert len(set(i2t.ranks.tolist() + t2i.ranks.tolist())) > 2


def test_distractors_of_one_image_make_no_further_positives() -> None:
    """All distractors of a pool have the same image; a query has one positive, or two."""
    counts, _ = negatives_before(np.ones((2, 3)), np.ones((9, 3)), np.arange(2), np.r_[0, 1, 1, [2] * 6])
    assert counts.shape == (2, 2)


def test_of_one_language_only_its_part_of_the_pools_is_ranked() -> None:
    found, kept = embeddings(), np.arange(36) % 3 == 0
    one = found._replace(captions=found.captions[kept], caption_row=found.caption_row[kept])
    one = one._replace(caption_image=found.caption_image[kept])
    ranked = rank_pools(one, POOLS)
    i2t, t2i = ranked["i2t"], ranked["t2i"]
    assert (len(i2t.ranks), i2t.pool) == (3, np.isin(one.caption_row, POOLS.text_candidates).sum())
    assert (len(t2i.ranks), t2i.pool) == (2, 7)


def test_pools_of_other_data_are_refused() -> None:
    found = embeddings()
    for name in ("image_queries", "text_queries"):
        with pytest.raises(UserError, match="not of the images and captions that were embedded"):
            rank_pools(found, POOLS._replace(**{name: np.array([900], "i4")}))
    with pytest.raises(UserError, match="not of the images"):
        rank_pools(found, POOLS._replace(image_candidates=np.array([3], "i4")))


def test_embeddings_of_two_splits_are_ranked_like_those_of_one() -> None:
    found = embeddings()
    cut, captions = 5, 5 * EACH
    parts = [
        Embeddings(found.images[rows], found.captions[texts], found.image_row[rows], found.caption_row[texts], owner)
        for rows, texts, owner in (
            (slice(cut, None), slice(captions, None), found.caption_image[captions:] - cut),
            (slice(cut), slice(captions), found.caption_image[:captions]),
        )
    ]
    both, apart = rank_pools(found, POOLS), rank_pools(joined(parts), POOLS)
    by_row = dict(zip([2, 5, 9], both["i2t"].ranks.tolist(), strict=True))
    assert apart["i2t"].ranks.tolist() == [by_row[row] for row in (9, 2, 5)]
    assert sorted(apart["t2i"].ranks.tolist()) == sorted(both["t2i"].ranks.tolist())
    assert [each.pool for each in apart.values()] == [each.pool for each in both.values()]


def test_the_command_writes_a_row_whose_protocol_has_both_pools(tmp_path: Path) -> None:
    names = [f"{number:02d}" for number in range(13)]
    owners = [names[0], *np.repeat(names[1:], EACH)]
    splits = {name: "test" if int(name) else "train" for name in names}
    write_data_set(tmp_path, splits, [(str(owner), "en", "dog") for owner in owners])
    np.savez(tmp_path / "embeddings.npz", **embeddings()._asdict())
    np.savez(tmp_path / "pools.npz", **POOLS._asdict())
    given = {name: tmp_path / f"{name}.npz" for name in ("pools", "embeddings")}
    given |= {name: tmp_path / f"{name}.json" for name in ("manifest", "metrics")}
    values = {**given, "embeddings": [given["embeddings"]], "model": "finetuned"}
    run_stage(score_pools, **values, settings={"metrics": {"bootstrap_samples": 20}})
    content = json.loads((tmp_path / "metrics.json").read_text())
    assert (content["model"], content["split"]) == ("finetuned", "pools")
    assert content["protocol"] == (
        "i2t:3images of 12captions,any own caption|t2i:4captions of 7images|ties:pessimistic|scores:float32|split:test"
        "|lang:en|ci:95,samples=20,seed=0"
    )
    ranked = rank_pools(embeddings(), POOLS)
    assert content["metrics"]["i2t_recall_5"]["value"] == pytest.approx((ranked["i2t"].ranks <= 5).mean())
    assert content["metrics"]["t2i_recall_1"]["value"] == pytest.approx((ranked["t2i"].ranks <= 1).mean())
    assert content["metrics"]["t2i_median_rank"]["value"] == np.median(ranked["t2i"].ranks)
    with pytest.raises(UserError, match="candidates of the split 'train'"):
        np.savez(tmp_path / "pools.npz", **POOLS._replace(image_candidates=np.arange(13, dtype="i4"))._asdict())
        run_stage(score_pools, **values)


def test_the_protocol_says_where_distractors_come_from() -> None:
    splits = np.array(["train", "validation", *["test"] * 11])
    tables = {"images": splits, "captions": np.repeat(splits, EACH)}
    data: Any = SimpleNamespace(**{name: pd.DataFrame({"split": values}) for name, values in tables.items()})
    found = embeddings()
    assert origin(found, POOLS, data) == ["distractors:2captions and 1images of validation"]
    one_language = found._replace(caption_row=found.caption_row[4:], captions=found.captions[4:])
    assert origin(one_language, POOLS, data) == ["distractors:1captions and 1images of validation"]


def test_any_caption_of_the_image_in_the_other_language_is_a_hit() -> None:
    english = [[1, 0], [0, 1], [1, 0]]  # of the images 0, 1 and 3
    chinese = [[0.6, 0.8], [1, 0], [0, 1], [1, 0]]  # of the images 0, 0, 1 and 2
    found = embeddings_of([*english, *chinese], [*english, *chinese], [0, 1, 3, 0, 0, 1, 2])
    languages = np.array(["en"] * 3 + ["zh"] * 4, object)
    ranked = dict(rank_languages(found, languages, ["en", "zh"]))
    assert ranked.keys() == {"en_to_zh", "zh_to_en"}
    asked = ranked["en_to_zh"]
    assert asked.ranks.tolist() == [2, 1]  # of image 0 the second caption is best, and that of image 2 equals it
    assert asked.image.tolist() == [0, 1]  # image 3 has no caption in the other language
    assert asked.pool == 4


@pytest.mark.parametrize("side", ["query", "candidate"])
def test_an_embedding_that_is_not_a_number_is_no_hit(side: str) -> None:
    good, bad = np.eye(3, dtype=np.float32), np.full((3, 3), np.nan, np.float32)
    queries, candidates = (bad, good) if side == "query" else (good, bad)
    with pytest.raises(UserError, match=f"3 embeddings are not finite .*{side}"):
        rank_queries(queries, candidates, np.arange(3), np.arange(3))
