"""Files of arrays: what was written comes back, and what does not fit is one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.damage import refuses_foreign_files
from vitcapr.errors import UserError
from vitcapr.formats.captions import AttentionTable, read_attention, write_attention
from vitcapr.formats.containers import read_arrays, write_arrays
from vitcapr.formats.embeddings import Embeddings, read_embeddings, write_embeddings
from vitcapr.formats.pairs import Pools, read_pools, write_pools
from vitcapr.formats.scores import RankFile, Ranks
from vitcapr.formats.tokens import TagTable, TokenTable
from vitcapr.formats.vocabulary import read_word_vectors, write_word_vectors

ROWS = np.array([0, 2], np.int32)
OWNER = np.array([0, 0, 1], np.int32)
CAPTION_ROWS = np.array([0, 1, 4], np.int32)
ATTENTION = AttentionTable(np.full((3, 6), 0.5, np.float16), np.array([0, 1, 3]), ROWS, (2, 3))
EMBEDDINGS = Embeddings(np.eye(2, 4, dtype=np.float32), np.eye(3, 4, dtype=np.float32), ROWS, CAPTION_ROWS, OWNER)
RANKS = RankFile(
    Ranks(np.array([1, 3], np.int32), np.array([1, 2, 1], np.int32), np.array([1.0, 0.0])), ROWS, CAPTION_ROWS, OWNER
)
POOLS = Pools(ROWS, CAPTION_ROWS, CAPTION_ROWS[:1], ROWS)
TAGS = TagTable.of([[(0, 1, "DET"), (2, 5, "NOUN")], [], [(1, 2, "VERB")]])
TOKENS = TokenTable.build([[1, 5, 2], [1, 2]], [0, 0], [0, 1])
VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)

FORMATS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "attention": (lambda path: write_attention(path, ATTENTION), read_attention),
    "embeddings": (lambda path: write_embeddings(path, EMBEDDINGS), read_embeddings),
    "ranks": (RANKS.write, RankFile.read),
    "pools": (lambda path: write_pools(path, POOLS), read_pools),
    "tokens": (TOKENS.write, TokenTable.read),
    "tags": (TAGS.write, TagTable.read),
    "vectors": (lambda path: write_word_vectors(path, VECTORS), read_word_vectors),
}


@pytest.fixture(params=FORMATS)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Callable[[Path], Any]]:
    write, read = FORMATS[request.param]
    write(tmp_path / "file.npz")
    return tmp_path / "file.npz", read


def test_foreign_and_cut_files_are_refused(written: tuple[Path, Callable[[Path], Any]]) -> None:
    path, read = written
    refuses_foreign_files(read, path)


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    write_embeddings(path, EMBEDDINGS)
    assert all(map(np.array_equal, read_embeddings(path), EMBEDDINGS))
    RANKS.write(path)
    found = RankFile.read(path)
    assert all(map(np.array_equal, found.ranks, RANKS.ranks))
    assert all(np.array_equal(getattr(found, name), getattr(RANKS, name)) for name in ("image_row", "caption_row"))
    write_attention(path, ATTENTION)
    table = read_attention(path)
    assert table.grid == (2, 3)
    assert [len(table.of_row(row)) for row in (0, 2)] == [1, 2]
    assert table.of_row(1) is None
    write_pools(path, POOLS)
    assert all(map(np.array_equal, read_pools(path), POOLS))
    write_word_vectors(path, VECTORS)
    np.testing.assert_array_equal(read_word_vectors(path), VECTORS)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (VECTORS.astype(np.float64), "type float64"),
        (VECTORS[0], r"shape is \(2,\)"),
    ],
)
def test_word_vectors_that_do_not_fit_are_refused(tmp_path: Path, vectors: np.ndarray, message: str) -> None:
    path = tmp_path / "vectors.npy"
    np.save(path, vectors)
    with pytest.raises(UserError, match=f"not an embedding of words: .*{message}"):
        read_word_vectors(path)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("attention", {"weights": np.zeros((3, 5), np.float16)}, "for 2 x 3 patches"),
        ("attention", {"weights": np.zeros((3, 6), np.int32)}, "weights is of type int32"),
        ("attention", {"grid": np.array([6])}, "not a table of attention"),
        ("attention", {"offsets": np.array([0, 3])}, "do not cut"),
        ("embeddings", {"captions": np.zeros((3, 5), np.float32)}, "not of one space"),
        ("embeddings", {"images": np.zeros((2, 4))}, "images is of type float64"),
        ("embeddings", {"image_row": np.arange(3)}, "3 and 3 rows for"),
        ("embeddings", {"caption_row": np.arange(2)}, "2 and 2 rows for"),
        ("embeddings", {"images": np.full((2, 4), np.inf, np.float32)}, "an embedding is not finite"),
        ("ranks", {"i2t": np.array([1.0, 3.0])}, "i2t is of type float64"),
        ("pools", {"image_queries": np.zeros(0, int)}, "no queries set apart"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    tmp_path: Path, name: str, changes: dict[str, np.ndarray], message: str
) -> None:
    write, read = FORMATS[name]
    path = tmp_path / "file.npz"
    write(path)
    with np.load(path) as whole:
        arrays = dict(whole)
    np.savez(path, **{**arrays, **changes})
    with pytest.raises(UserError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    np.savez(path, **{key: array for key, array in arrays.items() if key not in changes})
    with pytest.raises(UserError, match=next(iter(changes))):
        read(path)


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
