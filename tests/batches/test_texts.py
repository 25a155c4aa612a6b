"""Contrastive batches: which captions, in which form, and the same again from any batch on."""

import numpy as np
import pytest

from tests.data_sets import token_table
from vitcapr.batches.image_batches import Batch, Batches
from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.batches.texts import (
    FeatureAndWordTexts,
    FeatureTexts,
    Texts,
    WordTexts,
    draw_pairs,
)
from vitcapr.errors import UserError

CAPTIONS_OF = [3, 1, 0, 2, 5, 2, 4]
OWNER = np.repeat(np.arange(7), CAPTIONS_OF)


STORE = MemoryFeatures(cls=MemoryArray(np.arange(14, dtype=np.float16).reshape(7, 2)))
ROWS = 100 + np.arange(len(OWNER))
"""Where the captions stand in the store of text features."""


def features() -> FeatureTexts:
    vectors = np.repeat(np.arange(200, dtype=np.float16)[:, None], 3, axis=1)
    return FeatureTexts(MemoryArray(vectors), ROWS, OWNER)


def words(max_length: int = 9) -> WordTexts:
    """Caption m is 1, m + 3 as often as m % 4 says, 2."""
    captions = [[1, *[m + 3] * (m % 4), 2] for m in range(len(OWNER))]
    return WordTexts(token_table(captions, OWNER.tolist(), range(len(OWNER))), max_length)


def read(texts: Texts, **options: object) -> list[Batch]:
    return list(Batches(STORE, texts, np.arange(7), 2, arrays=("cls",), **options))  # type: ignore[arg-type]


def captions_in(batch: Batch) -> list[int]:
    """The captions of a batch of ``features()``."""
    return [int(value) - 100 for value in batch.texts[:, 0]]


@pytest.mark.parametrize("count", [1, 2])
def test_so_many_captions_of_each_image_drawn_anew_each_epoch(count: int) -> None:
    seen: set[int] = set()
    for epoch in range(1, 40):
        drawn = [caption for batch in read(features(), captions_per_image=count, epoch=epoch) for caption in
                 captions_in(batch)]  # fmt: skip
        assert len(set(drawn)) == len(drawn)
        assert np.bincount(OWNER[drawn], minlength=7).tolist() == [min(count, owned) for owned in CAPTIONS_OF]
        seen.update(drawn)
    assert seen == set(range(len(OWNER)))


def test_the_same_from_any_batch_on() -> None:
    options = {"captions_per_image": 1, "seed": 5, "epoch": 2}
    whole = [captions_in(batch) for batch in read(features(), **options)]
    assert len(whole) == 3
    assert whole == [captions_in(batch) for batch in read(features(), **options)]
    for start in range(4):
        assert [captions_in(batch) for batch in read(features(), start_batch=start, **options)] == whole[start:]
    for other in ({"epoch": 3}, {"seed": 6}):
        assert whole != [captions_in(batch) for batch in read(features(), **options | other)]


def test_a_process_without_an_image_of_a_batch_has_an_empty_share() -> None:
    """Three processes, two images in a batch: the third has none, in whichever form the captions are."""
    both = FeatureAndWordTexts(features(), words(4))
    for form, width in ((features(), 3), (both, 3), (words(), 1)):
        for batch in read(form, captions_per_image=1, share=(2, 3)):
            first = batch.texts[0] if isinstance(batch.texts, tuple) else batch.texts
            assert first.shape == (0, width)
            assert batch.features["cls"].shape == (0, 2)
            assert len(batch.image_index) == len(batch.rows) == 0


def test_pairs_are_sampled_from_the_given_images_and_larger_samples_contain_smaller_ones() -> None:
    rows = np.array([0, 3, 4, 6])
    others = ~np.isin(OWNER, rows)
    before = others
    for pairs in (2, 5, 14):
        kept = draw_pairs(OWNER, rows, pairs, seed=3)
        assert (kept & ~others).sum() == pairs
        assert kept[others].all()
        assert (kept >= before).all()
        before = kept
    assert draw_pairs(OWNER, rows, None, seed=3).all()
    assert (draw_pairs(OWNER, rows, 5, seed=3) != draw_pairs(OWNER, rows, 5, seed=4)).any()
    with pytest.raises(UserError, match="15 pairs of 14 captions"):
        draw_pairs(OWNER, rows, 15, seed=0)


@pytest.mark.parametrize("shuffle", [True, False])
def test_an_epoch_of_pairs_has_every_pair_once(shuffle: bool) -> None:
    """17 pairs in batches of 4; an image whose captions meet in a batch is read once."""
    batches = read(features(), batch_pairs=4, captions_per_image=1, seed=3, epoch=1, shuffle=shuffle)
    assert [len(batch.image_index) for batch in batches] == [4, 4, 4, 4, 1]
    assert sorted(caption for batch in batches for caption in captions_in(batch)) == list(range(len(OWNER)))
    for batch in batches:
        assert len(set(batch.rows.tolist())) == len(batch.rows)
        assert OWNER[captions_in(batch)].tolist() == batch.rows[batch.image_index].tolist()
        assert batch.features["cls"].tolist() == STORE["cls"].values[batch.rows.numpy()].tolist()


def test_pairs_are_drawn_from_all_images() -> None:
    """Not image by image: the batches differ from epoch to epoch, and their images too."""
    first = [{int(row) for row in read(features(), batch_pairs=4, epoch=epoch)[0].rows} for epoch in range(20)]
    assert set.union(*first) == {0, 1, 3, 4, 5, 6}
    assert len({frozenset(rows) for rows in first}) > 5


@pytest.mark.parametrize("processes", [2, 3, 5])
def test_processes_share_a_batch_of_pairs(processes: int) -> None:
    whole = [captions_in(batch) for batch in read(features(), batch_pairs=4, seed=2)]
    shares = [read(features(), batch_pairs=4, seed=2, share=(rank, processes)) for rank in range(processes)]
    together = [[caption for part in parts for caption in captions_in(part)] for parts in zip(*shares, strict=True)]
    assert together == whole
