"""Files of arrays: what was written comes back, and what does not fit is one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.formats.damage import refuses_foreign_files
from vitcapr.errors import UserError
from vitcapr.formats.captions import AttentionTable, read_attention, write_attention
from vitcapr.formats.embeddings import Embeddings, read_embeddings, write_embeddings
from vitcapr.formats.pairs import Pools, read_pools, write_pools
from vitcapr.formats.scores import RankFile, Ranks
from vitcapr.formats.tokens import TagTable
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
VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)

FORMATS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "attention": (lambda path: write_attention(path, ATTENTION), read_attention),
    "embeddings": (lambda path: write_embeddings(path, EMBEDDINGS), read_embeddings),
    "ranks": (RANKS.write, RankFile.read),
    "pools": (lambda path: write_pools(path, POOLS), read_pools),
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
        (np.full((1, 2), np.nan, np.float32), "not finite"),
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
        ("attention", {"weights": np.full((3, 6), np.nan, np.float16)}, "not finite"),
        ("attention", {"offsets": np.array([0, 4, 3])}, "do not cut"),
        ("attention", {"offsets": np.array([0, 3])}, "offsets of shape"),
        ("attention", {"grid": np.array([-2, -3])}, "patches"),
        ("attention", {"grid": np.array([6])}, "not a table of attention"),
        ("attention", {"image_row": np.array([2, 2])}, "twice"),
        ("attention", {"image_row": np.array([-1, 2])}, "negative"),
        ("embeddings", {"captions": np.zeros((3, 5), np.float32)}, "not of one space"),
        ("embeddings", {"images": np.zeros((2, 4))}, "images is of type float64"),
        ("embeddings", {"image_row": np.arange(3)}, "for 2 images"),
        ("embeddings", {"caption_row": np.arange(2)}, "for 3 captions"),
        ("embeddings", {"caption_image": np.array([0, 1, 0])}, "not in the order"),
        ("embeddings", {"caption_image": np.array([0, 0, 2])}, "belongs to no image"),
        ("embeddings", {"caption_image": np.array([-1, 0, 1])}, "belongs to no image"),
        ("embeddings", {"caption_row": np.array([-1, 0, 1])}, "negative"),
        ("embeddings", {"images": np.full((2, 4), np.inf, np.float32)}, "2 embeddings are not finite"),
        ("ranks", {"i2t": np.array([0, 3])}, "below 1 or beyond"),
        ("ranks", {"i2t": np.array([1, 4])}, "below 1 or beyond"),
        ("ranks", {"t2i": np.array([1, 2, 3])}, "below 1 or beyond"),
        ("ranks", {"i2t": np.array([1.0, 3.0])}, "i2t is of type float64"),
        ("ranks", {"i2t_precision": np.array([0.5, np.nan])}, "between 0 and 1"),
        ("ranks", {"i2t_precision": np.array([0.5])}, "of images"),
        ("ranks", {"t2i": np.array([1, 2])}, "of captions"),
        ("ranks", {"caption_image": np.array([0, 1, 0])}, "order of the images"),
        ("pools", {"text_queries": np.array([4, 1])}, "text_queries are not increasing"),
        ("pools", {"text_queries": np.array([-1])}, "text_queries are not increasing"),
        ("pools", {"image_queries": np.zeros((1, 1), int)}, "image_queries are not increasing"),
        ("pools", {"image_queries": np.zeros(0, int)}, "no queries set apart"),
        ("tags", {"tag": np.array([1, 2, 13], np.int8)}, "not that of a tag"),
        ("tags", {"end": np.array([1, 1, 2])}, "no characters"),
        ("tags", {"offsets": np.array([0, 2, 1, 3])}, "do not cut"),
        ("tags", {"start": np.array([0])}, "1 starts, 3 ends and 3 tags"),
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
