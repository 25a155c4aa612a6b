import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data_sets import write_data_set
from tests.tokens import token_table
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.vocabulary import Vocabulary


def table():
    return token_table([[1, 5, 2], [1, 2], [1, 6, 7, 2]], image_row=[0, 0, 3], caption_row=[0, 1, 9])


def test_captions_lie_end_to_end():
    built = table()
    assert built.ids.tolist() == [1, 5, 2, 1, 2, 1, 6, 7, 2]
    assert built.offsets.tolist() == [0, 3, 5, 9]
    assert built.lengths.tolist() == [3, 2, 4]
    assert built[2].tolist() == [1, 6, 7, 2]
    assert [array.dtype for array in (built.ids, built.offsets, built.image_row, built.caption_row)] == [
        np.int32,
        np.int64,
        np.int32,
        np.int32,
    ]
    with pytest.raises(IndexError):
        built[3]
    with pytest.raises(IndexError):
        built[-1]


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=9), max_size=20))
def test_files_bring_back_the_same_captions_in_the_same_bytes(tmp_path_factory, captions):
    folder = tmp_path_factory.mktemp("tokens")
    rows = list(range(len(captions)))
    for name in ("one.npz", "two.npz"):
        token_table(captions, rows, rows).write(folder / name)
    back = TokenTable.read(folder / "one.npz")
    assert [back[row].tolist() for row in rows] == captions
    assert back.image_row.tolist() == back.caption_row.tolist() == rows
    assert (folder / "one.npz").read_bytes() == (folder / "two.npz").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": np.array([0, 3, 5], np.int64)},
        {"offsets": np.array([0, 3, 5, 8], np.int64)},
        {"offsets": np.array([0, 5, 3, 9], np.int64)},
        {"ids": np.zeros(9, np.int64)},
        {"ids": np.array([{}] * 9, dtype=object)},
    ],
)
def test_another_table_is_refused(tmp_path, change):
    path = tmp_path / "tokens.npz"
    np.savez(path, **(vars(table()) | change))
    with pytest.raises(UserError, match="not a table of captions"):
        TokenTable.read(path)


def test_chosen_captions_are_those_of_the_table() -> None:
    table = token_table([[1, 5, 2], [1, 2], [1, 7, 8, 2]], image_row=[0, 0, 1], caption_row=[4, 5, 6])
    chosen = table.select(np.array([True, False, True]))
    assert [chosen[number].tolist() for number in range(2)] == [[1, 5, 2], [1, 7, 8, 2]]
    assert chosen.image_row.tolist() == [0, 1]
    assert chosen.caption_row.tolist() == [4, 6]


def test_shifted_rows_and_foreign_numbers_are_refused(tmp_path):
    captions, path = [(image, "en", "a cat") for image in "aabc"], tmp_path / "tokens.npz"
    data = read_manifest(write_data_set(tmp_path / "data", dict.fromkeys("abc", "train"), captions))
    words = Vocabulary.build(["cat", "dog"], min_count=1, unknown=False)
    ids, offsets = np.array([1, 3, 2, 1, 4, 2, 1, 4, 3, 2], np.int32), np.array([0, 3, 6, 10], np.int64)
    image_row, caption_row = np.array([0, 1, 2], np.int32), np.array([1, 2, 3], np.int32)

    def read(**changed):
        arrays = {"ids": ids, "offsets": offsets, "image_row": image_row, "caption_row": caption_row}
        np.savez(path, **{name: np.asarray(changed.get(name, array), array.dtype) for name, array in arrays.items()})
        return TokenTable.read(path, data, words)

    assert len(read()) == 3
    for changed, message in (
        ({"image_row": [1, 2, 2]}, "a caption belongs to another image"),
        ({"image_row": [2, 0, 1]}, "a caption belongs to another image"),
        ({"caption_row": [2, 3, 4]}, "leave captions.parquet"),
        ({"caption_row": [3, 1, 2]}, "do not increase"),
        ({"ids": np.where(ids == 4, 5, ids)}, "a number is not among the 5 of the vocabulary"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            read(**changed)
        assert str(path) in str(caught.value)
        assert caught.value.remedy == "run the vocabulary stage again"
    token_table([], [], []).write(path)
    assert len(TokenTable.read(path, data, words)) == 0
