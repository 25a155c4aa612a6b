"""Who is learnt from and who is validated on."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.data.pair_splits import choose_pools, classify_caption, commonest, deal, draw


def pictures(rows: list[tuple[str, int, int]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["category", "zh", "en"])
    return table.assign(image_id=[f"p{number}" for number in range(len(rows))])


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=80),
    st.sampled_from([0.1, 0.3, 0.5]),
    st.integers(0, 3),
)
def test_every_class_meets_the_share_to_within_one_picture(
    rows: list[tuple[str, int, int]], share: float, seed: int
) -> None:
    table = pictures(rows)
    split_of = deal(table, share, seed)
    assert set(split_of) == set(table["image_id"])
    table["held"] = [split_of[image_id] == "validation" for image_id in table["image_id"]]
    for keys in (["category"], ["category", "zh", "en"]):
        for _, part in table.groupby(keys):
            assert abs(part["held"].sum() - share * len(part)) <= 1


def test_the_order_of_the_file_does_not_matter_and_the_seed_does() -> None:
    table = pictures([("a", 1, 1)] * 60)
    assert deal(table, 0.3, 0) == deal(table.iloc[::-1], 0.3, 0)
    assert deal(table, 0.3, 0) != deal(table, 0.3, 1)


def test_a_draw_has_its_size_and_grows_without_changing() -> None:
    ids = [str(number) for number in range(50)]
    assert len(draw(ids, 7, 0, "x")) == 7
    assert draw(ids, 7, 0, "x") < draw(ids, 8, 0, "x")
    assert draw(ids, 99, 0, "x") == set(ids)
    assert draw(ids, 7, 0, "x") != draw(ids, 7, 0, "y")


def three_captions_an_image(images: range) -> pd.DataFrame:
    rows = [(3 * image + k, f"c{3 * image + k}", image, f"i{image}") for image in images for k in range(3)]
    return pd.DataFrame(rows, columns=["caption_row", "caption_id", "image_row", "image_id"])


@pytest.mark.parametrize(("queries", "candidates"), [(5, 12), (5, 1000), (500, 3)])
def test_pools_hold_every_true_match_and_their_size(queries: int, candidates: int) -> None:
    captions = three_captions_an_image(range(10, 30))
    pools = choose_pools(captions, queries, candidates, 0)
    asked = pools.image_queries
    true_texts = captions["caption_row"][captions["image_row"].isin(asked)]
    assert len(asked) == min(queries, 20)
    assert len(pools.text_queries) == min(queries, 60)
    assert set(true_texts) <= set(pools.text_candidates)
    assert len(pools.text_candidates) == max(min(candidates, 60), len(true_texts))
    true_images = set(captions["image_row"][captions["caption_row"].isin(pools.text_queries)])
    assert true_images <= set(pools.image_candidates)
    assert len(pools.image_candidates) == max(min(candidates, 20), len(true_images))
    for rows in pools:
        assert (np.diff(rows) > 0).all()  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("text", "language", "category"),
    [
        ("A dog on the beach", "en", "animal"),
        ("Two men play football", "en", "sport"),
        ("A wedding party", "en", "social"),
        ("Footballish thing", "en", "other"),
        ("两个男人在踢球", "zh", "sport"),
        ("一只狗在草地上", "zh", "animal"),
        ("一个女人", "zh", "person"),
        ("无", "zh", "other"),
        # A horse, and a road; a cow, and jeans; a mountain, and a mountain bike.
        ("一匹马在跑", "zh", "animal"),
        ("马路上的建筑", "zh", "landscape"),
        ("穿牛仔裤的男人", "zh", "person"),
        ("一辆山地车", "zh", "object"),
    ],
)
def test_the_class_of_a_caption(text: str, language: str, category: str) -> None:
    assert classify_caption(text, language) == category


def test_the_class_of_a_picture() -> None:
    assert commonest(["person", "animal", "animal"]) == "animal"
    assert commonest(["other", "other", "sport"]) == "sport"
    assert commonest(["person", "animal"]) == "animal"
    assert commonest(["other"]) == "other"
    assert commonest([]) == "other"


def test_distractors_fill_up_pools_after_the_test_split() -> None:
    test, validation, train = map(three_captions_an_image, (range(5), range(5, 8), range(8, 20)))
    alone = choose_pools(test, 4, 30, 0)
    filled = choose_pools(test, 4, 30, 0, distractors=[validation, train])
    assert set(filled.image_queries) == set(alone.image_queries) <= set(range(5))
    assert set(filled.text_queries) == set(alone.text_queries)
    assert set(alone.text_candidates) | set(validation["caption_row"]) <= set(filled.text_candidates)
    assert (len(alone.text_candidates), len(filled.text_candidates)) == (15, 30)
    assert filled.image_candidates.tolist() == list(range(20))
