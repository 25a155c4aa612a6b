import pytest

from tests.data_sets import candidate
from vitcapr.errors import UserError
from vitcapr.formats.captions import DecodedCaption
from vitcapr.formats.manifest import read_manifest
from vitcapr.report.figures.examples import choose, open_images, rows_of_split


def test_the_choice_is_a_random_sample_without_repetition():
    rows = list(range(100, 200))
    assert choose(rows, 12) == choose(rows, 12) == sorted(set(choose(rows, 12)))
    assert len(choose(rows, 12)) == 12
    assert choose(rows, 12) != rows[:12]
    assert choose([5, 3], 12) == [3, 5]


def test_a_higher_rank_comes_first():
    assert choose(list(range(40)), 3, rank=lambda row: row in (7, 9, 30)) == [7, 9, 30]
    assert 7 in choose(list(range(40)), 3, rank=lambda row: row == 7)


def test_images_that_every_model_captioned(dataset):
    manifest = read_manifest(dataset)
    caption = DecodedCaption(image_id="any", caption="a", tokens=("a",), candidates=(candidate("a"),))
    captions = {"one": {"i0": caption, "i2": caption, "i6": caption}, "two": {"i2": caption, "i3": caption}}
    assert rows_of_split(manifest, "test", captions) == [2]
    with pytest.raises(UserError, match="no image of the split train has a caption by one and two"):
        rows_of_split(manifest, "train", captions)
    with pytest.raises(UserError, match="there is no split 'tset'"):
        rows_of_split(manifest, "tset", captions)


def test_a_picture_that_has_gone_is_a_users_mistake(dataset, tmp_path):
    manifest = read_manifest(dataset)
    (tmp_path / "i3.png").unlink()
    with open_images(manifest) as read:
        assert read(2).size == (64, 16)
        with pytest.raises(UserError, match=r"cannot draw i3\.png: no such file"):
            read(3)
