import numpy as np
import pytest

from tests.data_sets import token_table, write_data_set
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.vocabulary import Vocabulary


def test_chosen_captions_are_those_of_the_table() -> None:
    table = token_table([[1, 5, 2], [1, 2], [1, 7, 8, 2]], image_row=[0, 0, 1], caption_row=[4, 5, 6])
    chosen = table.select(np.array([True, False, True]))
    assert [chosen[number].tolist() for number in range(2)] == [[1, 5, 2], [1, 7, 8, 2]]
    assert chosen.image_row.tolist() == [0, 1]
    assert chosen.caption_row.tolist() == [4, 6]
    assert (table.lengths.tolist(), table.ids.dtype, table.offsets.dtype) == ([3, 2, 4], np.int32, np.int64)
    for place in (3, -1):
        with pytest.raises(IndexError):
            table[place]


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
