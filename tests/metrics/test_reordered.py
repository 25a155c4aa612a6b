import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from vitcapr.errors import UserError
from vitcapr.metrics.ranks import Ranks, rank_matches
from vitcapr.metrics.reordered import Matches, Mix, first_matches, reordered_ranks
from vitcapr.metrics.retrieval_files import Embeddings


def embeddings(images: int = 20, each: int = 3, seed: int = 0) -> Embeddings:
    draw = np.random.default_rng(seed)
    vectors = [draw.normal(size=(count, 4)).astype(np.float32) for count in (images, images * each)]
    one, other = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in vectors)
    owner = np.repeat(np.arange(images, dtype=np.int32), each)
    return Embeddings(one, other, np.arange(images, dtype=np.int32), np.arange(len(other), dtype=np.int32), owner)


def matches(found: Embeddings, top: int, seed: int = 1) -> Matches:
    image_captions, image_cosines, caption_images, caption_cosines = first_matches(found, top)
    logits = np.random.default_rng(seed).normal(size=(len(found.images), len(found.captions))).astype(np.float32)
    return Matches(
        image_captions,
        image_cosines,
        np.take_along_axis(logits, image_captions, axis=1),
        caption_images,
        caption_cosines,
        np.take_along_axis(logits.T, caption_images, axis=1),
        found.image_row,
        found.caption_row,
        found.caption_image,
    )


def ranked(found: Embeddings) -> Ranks:
    return rank_matches(found.images, found.captions, found.caption_image)


@pytest.mark.parametrize("top", [1, 5, 1000])
def test_weight_nought_changes_nothing(top: int) -> None:
    found = embeddings()
    before = ranked(found)
    after = reordered_ranks(matches(found, top), before, Mix(0.0, 0.3, 2.0))
    assert (after.i2t == before.i2t).all()
    assert (after.t2i == before.t2i).all()
    if top > 3:
        assert after.i2t_precision == pytest.approx(before.i2t_precision)


def test_the_order_is_that_of_the_mixed_score() -> None:
    """Against the whole matrix, sorted: two images of two captions, the first three matches of each."""
    found = embeddings(images=30, each=2, seed=3)
    before, some, mix = ranked(found), matches(found, 9), Mix(0.6, 0.5, 1.5)
    after = reordered_ranks(some, before, mix)
    for image in range(30):
        mixed = 0.4 * some.image_cosines[image] / 0.5 + 0.6 * some.image_logits[image] / 1.5
        order = some.image_captions[image][np.argsort(-mixed)]
        own = [place for place, caption in enumerate(order) if found.caption_image[caption] == image]
        assert after.i2t[image] == (own[0] + 1 if own else before.i2t[image])
    for caption in range(60):
        mixed = 0.4 * some.caption_cosines[caption] / 0.5 + 0.6 * some.caption_logits[caption] / 1.5
        order = some.caption_images[caption][np.argsort(-mixed)].tolist()
        owner = found.caption_image[caption]
        assert after.t2i[caption] == (order.index(owner) + 1 if owner in order else before.t2i[caption])


def test_equal_scores_stand_before_the_true_match() -> None:
    same = embeddings()._replace(images=np.ones((20, 4), np.float32) / 2, captions=np.ones((60, 4), np.float32) / 2)
    before, some = ranked(same), matches(same, 10)
    for own in some.own:
        assert not own.any()
    constant = Matches(**{**vars(matches(same, 60)), "image_logits": np.zeros((20, 60), np.float32)})
    assert (reordered_ranks(constant, before, Mix(1.0, 1.0, 1.0)).i2t == 58).all()


def test_of_equal_cosines_the_wrong_come_first() -> None:
    """Each image has its own caption twice, and another image has them too."""
    rows = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]]
    places = np.arange(8, dtype=np.int32)
    found = Embeddings(rows, np.repeat(rows, 2, 0), places[:4], places, np.repeat(places[:4], 2))
    image_captions, cosines, caption_images, _ = first_matches(found, 4)
    assert [set(row[:2]) for row in image_captions.tolist()] == [{2, 3}, {0, 1}, {6, 7}, {4, 5}]
    assert [set(row[2:]) for row in image_captions.tolist()] == [{0, 1}, {2, 3}, {4, 5}, {6, 7}]
    assert (cosines == 1).all()
    assert caption_images[:, :2].tolist() == [[1, 0]] * 2 + [[0, 1]] * 2 + [[3, 2]] * 2 + [[2, 3]] * 2


TIES = """
import numpy as np
from vitcapr.metrics.reordered import first_matches
from vitcapr.metrics.retrieval_files import Embeddings
for dim in (37, 64):
    row = np.random.default_rng(0).normal(size=(1, dim)).astype(np.float32)
    same, owner = np.repeat(row / np.linalg.norm(row), 95, 0), np.repeat(np.arange(19), 5)
    found = Embeddings(same[:19], same, np.arange(19), np.arange(95), owner)
    captions, _, images, _ = first_matches(found, 3)
    assert not (owner[captions] == np.arange(19)[:, None]).any(), dim
    assert not (images == owner[:, None]).any(), dim
"""


def test_collapsed_embeddings_find_nothing_on_any_processor() -> None:
    """The matrix product of this one scores equal pairs unequally."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Haswell"}
    subprocess.run([sys.executable, "-c", TIES], check=True, env=environment, timeout=120)


def test_captions_beyond_the_first_matches_do_not_add_to_the_precision() -> None:
    """Three captions each, the first two matches: the third own caption is at best unseen, and counts nothing."""
    found = embeddings()
    found = found._replace(captions=found.captions + found.images[found.caption_image])
    some = matches(found, 2)
    after = reordered_ranks(some, ranked(found), Mix(0.0, 1.0, 1.0))
    first, second = some.own[0].T.astype(float)
    assert first.any()
    assert second.any()
    assert after.i2t_precision == pytest.approx((first + second * (first + second) / 2) / 3)


def test_a_logit_that_is_not_a_number_is_refused() -> None:
    found = embeddings()
    some = matches(found, 5)
    logits = some.caption_logits.copy()
    logits[3, 2] = np.nan
    with pytest.raises(UserError, match="caption_logits of the matches are not finite"):
        reordered_ranks(replace(some, caption_logits=logits), ranked(found), Mix(0.5, 1.0, 1.0))


def test_the_file_keeps_all(tmp_path: Path) -> None:
    some = matches(embeddings(), 5)
    for name in ("a.npz", "b.npz"):
        some.write(tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    again = Matches.read(tmp_path / "a.npz")
    assert all((getattr(again, name) == array).all() for name, array in vars(some).items())
    with pytest.raises(UserError, match="no such file"):
        Matches.read(tmp_path / "c.npz")
    np.savez(tmp_path / "d.npz", other=np.ones(1))
    with pytest.raises(UserError, match="not a table of matches"):
        Matches.read(tmp_path / "d.npz")
