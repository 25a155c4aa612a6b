import json

import numpy as np
import pytest

from vitcapr.data.images import ImageSource
from vitcapr.data.manifest import read_manifest
from vitcapr.errors import UserError
from vitcapr.figures.decoded import AttentionTable, Caption, read_attention, read_captions
from vitcapr.figures.examples import choose, choose_long, read_picture, rows_of_split


def test_the_choice_is_a_seeded_sample_without_repetition():
    rows = list(range(100, 200))
    assert choose(rows, 12, seed=1) == choose(rows, 12, seed=1) != choose(rows, 12, seed=2)
    assert len(set(choose(rows, 12, seed=1))) == 12
    assert choose(rows, 12, seed=1) == sorted(choose(rows, 12, seed=1))
    assert choose([5, 3], 12, seed=1) == [3, 5]


def test_long_captions_are_preferred():
    lengths = {row: row for row in range(40)}
    assert set(choose_long(lengths, 3, seed=0)) <= set(range(30, 40))
    assert choose_long({7: 5, 3: 9, 4: 5}, 2, seed=0) == [3, 4]
    assert choose_long({7: 5}, 4, seed=0) == [7]


def test_images_that_every_model_captioned(dataset):
    manifest = read_manifest(dataset)
    caption = Caption("a", ("a",))
    captions = {"one": {"i0": caption, "i2": caption, "i6": caption}, "two": {"i2": caption, "i3": caption}}
    assert rows_of_split(manifest, "test", captions) == [2]
    with pytest.raises(UserError, match="no image of the split train has a caption by one and two"):
        rows_of_split(manifest, "train", captions)
    with pytest.raises(UserError, match="there is no split 'tset'"):
        rows_of_split(manifest, "tset", captions)


def test_a_picture_that_has_gone_is_a_users_mistake(dataset, tmp_path):
    manifest = read_manifest(dataset)
    (tmp_path / "i3.png").unlink()
    with ImageSource(manifest.image_root) as source:
        assert read_picture(manifest, source, 2).size == (64, 16)
        with pytest.raises(UserError, match=r"cannot draw i3\.png: no such file"):
            read_picture(manifest, source, 3)


@pytest.mark.usefixtures("dataset")
def test_captions_are_read_by_image(tmp_path):
    captions = read_captions(tmp_path / "captions.json")
    assert captions["i1"] == Caption("word0 word1 word2", ("word0", "word1", "word2"))
    (tmp_path / "captions.json").write_text(json.dumps({"i1": "a"}))
    with pytest.raises(UserError, match="not a file of captions"):
        read_captions(tmp_path / "captions.json")


@pytest.mark.usefixtures("dataset")
def test_attention_is_read_by_row(tmp_path):
    table = read_attention(tmp_path / "attention.npz")
    assert table.of_row(1).shape == (3, 3, 4)
    assert np.array_equal(table.of_row(1).reshape(3, 12), table.weights[2:5])
    assert table.of_row(6) is None


@pytest.mark.parametrize(("grid", "offsets"), [((2, 2), [0, 2]), ((1, 3), [0, 1]), ((1, 3), [0, 1, 2])])
def test_attention_that_does_not_fit_together_is_refused(tmp_path, grid, offsets):
    values = {"weights": np.zeros((2, 3)), "offsets": np.array(offsets), "image_row": np.array([0])}
    with pytest.raises(ValueError, match=r"weights of shape|offsets"):
        AttentionTable(**values, grid=grid)
    np.savez(tmp_path / "a.npz", **values, grid=np.array(grid))
    with pytest.raises(UserError, match="not a table of attention"):
        read_attention(tmp_path / "a.npz")


def test_missing_attention_says_how_to_get_it(tmp_path):
    with pytest.raises(UserError, match=r"run the decode stage with decoding\.attention"):
        read_attention(tmp_path / "none.npz")
