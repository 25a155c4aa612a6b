"""Chunk files side by side in one range of addresses."""

import mmap
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitcapr.features.store import chunk_maps
from vitcapr.features.store.chunk_maps import ChunkMaps

HUGE = 2 << 20
EVERYTHING = 1 << 40


def maps_of(folder: Path, chunks: np.ndarray, budget: int = EVERYTHING) -> ChunkMaps:
    """``chunks: (C, rows, ...)``, a file each."""
    for index, chunk in enumerate(chunks):
        (folder / str(index)).write_bytes(chunk.tobytes())
    return ChunkMaps(
        lambda index: folder / str(index), len(chunks) * chunks.shape[1] - 1, chunks.shape[1:], chunks.dtype, budget
    )


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("rows", [(3, 7), (2, 4096), (3, 5000, 140), (2, 1 << 20)])
def test_every_chunk_lies_at_its_pitch(tmp_path: Path, rows: tuple[int, ...]) -> None:
    chunks = numbers(3, *rows)
    maps = maps_of(tmp_path, chunks)
    maps.map(np.array([2, 0, 1, 0]))
    assert maps.complete
    assert maps.places.tolist() == [row // rows[0] * maps.pitch + row % rows[0] for row in range(3 * rows[0] - 1)]
    for index in range(3):
        placed = maps.rows[index * maps.pitch : index * maps.pitch + rows[0]]
        np.testing.assert_array_equal(placed, chunks[index])
        assert placed.ctypes.data % (HUGE if chunks[0].nbytes >= HUGE else mmap.PAGESIZE) == 0
    assert not maps.rows.flags.writeable


@given(row=st.integers(1, 100_000), count=st.integers(1, 64))
def test_chunks_do_not_overlap(row: int, count: int) -> None:
    pitch, rows = chunk_maps._reserve(3, (count, row), np.dtype(np.uint8))
    assert pitch >= count
    assert rows.shape == (3 * pitch, row)
    assert pitch * row % mmap.PAGESIZE == rows.ctypes.data % mmap.PAGESIZE == 0


def test_only_what_is_wanted_is_mapped_and_no_more_than_the_budget(tmp_path: Path) -> None:
    maps = maps_of(tmp_path, numbers(4, 2, 5), budget=2 * 10 + 9)
    maps.map(np.array([3, 3]))
    assert maps.mapped.tolist() == [False, False, False, True]
    maps.map(np.array([2, 1, 3]))
    assert maps.mapped.tolist() == [False, True, False, True]
    maps.map(np.array([0, 1]))
    assert maps.mapped.tolist() == [False, True, False, True]
    assert not maps.complete


def test_files_that_cannot_be_mapped_are_left_to_be_read(tmp_path: Path) -> None:
    chunks = numbers(4, 2, 5)
    maps = maps_of(tmp_path, chunks)
    (tmp_path / "0").unlink()
    (tmp_path / "1").write_bytes(chunks[1].tobytes()[:-1])
    maps.map(np.array([0, 1, 2]))
    assert maps.mapped.tolist() == [False, False, True, False]
    np.testing.assert_array_equal(maps.rows[2 * maps.pitch :][:2], chunks[2])


def test_rows_outlive_the_maps_and_the_files(tmp_path: Path) -> None:
    chunks = numbers(2, 2, 5)
    maps = maps_of(tmp_path, chunks)
    maps.map(np.array([1]))
    kept = maps.rows[maps.pitch :][:2]
    (tmp_path / "1").unlink()
    del maps
    np.testing.assert_array_equal(kept, chunks[1])


def test_addresses_that_are_refused_leave_everything_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_maps, "_ADDRESSES", 3 * mmap.PAGESIZE)
    maps = maps_of(tmp_path, numbers(3, 2, mmap.PAGESIZE // 2))
    maps.map(np.array([0]))
    assert not maps.mapped.any()
    assert len(maps.rows) == 0


def test_huge_pages_are_given_up_before_the_mapping_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = numbers(2, 3, HUGE // 2 + mmap.PAGESIZE)
    monkeypatch.setattr(chunk_maps, "_ADDRESSES", chunks.nbytes + mmap.PAGESIZE)
    maps = maps_of(tmp_path, chunks)
    assert maps.pitch == 3
    maps.map(np.array([1, 0]))
    np.testing.assert_array_equal(maps.rows, chunks.reshape(6, -1))


LIMITED = """
import resource, sys
import numpy as np
from vitcapr.features.store.chunk_maps import ChunkMaps, mappable_bytes
limit = 4 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
print(mappable_bytes() <= limit // 8, len(ChunkMaps(str, 2000, (2, 1 << 20), np.dtype(np.uint8), 1 << 40).rows) == 0)
"""


def test_a_limited_address_space_is_not_used_up() -> None:
    if resource.getrlimit(resource.RLIMIT_AS)[1] != resource.RLIM_INFINITY:
        pytest.skip("the address space is limited already")
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
