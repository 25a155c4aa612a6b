"""Arrays come back as they were; anything else is a mistake in words."""

from pathlib import Path

import numpy as np
import pytest

from vitcapr.errors import UserError
from vitcapr.formats.containers import read_arrays, write_arrays


def test_arrays_come_back_and_equal_ones_are_equal_bytes(tmp_path: Path) -> None:
    arrays = {"a": np.arange(3), "b": np.ones((2, 2), np.float16)}
    for name in ("one.npz", "two.npz"):
        write_arrays(tmp_path / name, arrays)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    found = read_arrays(tmp_path / "one.npz", dict.fromkeys(arrays, np.number), "arrays", "make them")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(tmp_path / "no.npz", {"a": np.array([{}], object)})
    assert not list(tmp_path.iterdir())
    np.savez(tmp_path / "objects.npz", a=np.array([{}], object))
    with pytest.raises(UserError, match=r"not arrays: .*make them again"):
        read_arrays(tmp_path / "objects.npz", {"a": np.number}, "arrays", "make them")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"\x93NUMPY", None])
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "arrays.npz"
    if content is None:
        write_arrays(path, {"b": np.arange(2)})
    else:
        path.write_bytes(content)
    with pytest.raises(UserError, match=r"not arrays: .*make them again"):
        read_arrays(path, {"a": np.number}, "arrays", "make them")


def test_a_missing_file_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no such file.*make them"):
        read_arrays(tmp_path / "arrays.npz", {"a": np.number}, "arrays", "make them")
