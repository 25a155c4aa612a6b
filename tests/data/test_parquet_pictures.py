"""Pictures inside Parquet files: read in place, a row group at a time."""

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vitcapr.data import parquet_pictures
from vitcapr.data.images import BadImage, ImageSource
from vitcapr.data.parquet_pictures import picture_path, split_table_path
from vitcapr.errors import UserError

Picture = Callable[..., bytes]


def write(path: Path, pictures: list[bytes | None], group: int, *, nested: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [{"bytes": picture, "path": None} for picture in pictures] if nested else pictures
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())]) if nested else pa.binary()
    columns = {"image": pa.array(cells, kind), "img_id": [str(number) for number in range(len(pictures))]}
    pq.write_table(pa.table(columns), path, row_group_size=group)
    return path


def colors(number: int) -> tuple[int, int, int]:
    return (number, 255 - number, 7)


def test_a_path_names_file_and_row() -> None:
    assert picture_path("data/test-0.parquet", 12) == "data/test-0.parquet/000012"
    assert split_table_path("data/test-0.parquet/000012") == ("data/test-0.parquet", "image", 12)
    assert picture_path("x.parquet/0.parquet", 3, "jpg") == "x.parquet/0.parquet/jpg/000003"
    assert split_table_path("x.parquet/0.parquet/jpg/000003") == ("x.parquet/0.parquet", "jpg", 3)
    assert not any(map(split_table_path, ("data/t.parquet", "data/000012", "old.parquet/a.jpg")))


@pytest.mark.parametrize("nested", [True, False])
def test_many_threads_read_every_row(tmp_path: Path, picture: Picture, nested: bool) -> None:
    pictures = [picture(colors(number), format="PNG") for number in range(40)]
    write(tmp_path / "a" / "train-0.parquet", pictures[:25], 4, nested=nested)
    write(tmp_path / "train-1.parquet", pictures[25:], 7, nested=nested)
    paths = [picture_path("a/train-0.parquet", row) for row in range(25)]
    paths += [picture_path("train-1.parquet", row) for row in range(15)]
    with ImageSource(tmp_path) as source, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(source.read, paths * 3)) == pictures * 3
        assert source.open(paths[30], 100).getpixel((0, 0)) == colors(30)


def test_three_row_groups_are_in_memory_and_no_file_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 pictures of 200,000 bytes in groups of four: reading all of them in order holds at most three groups."""
    size, group = 200_000, 4
    path = write(tmp_path / "t.parquet", [bytes([row]) * size for row in range(40)], group)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    groups: list[int] = []
    read = pq.ParquetFile.read_row_group

    def counting(table: pq.ParquetFile, index: int, **options: object) -> pa.Table:
        groups.append(index)
        return read(table, index, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counting)
    gc.collect()
    start, most = pa.total_allocated_bytes(), 0
    with ImageSource(tmp_path) as source:
        for row in range(40):
            assert source.read(picture_path(path.name, row)) == bytes([row]) * size
            most = max(most, pa.total_allocated_bytes() - start)
    assert groups == list(range(10))
    assert most <= (parquet_pictures.GROUPS_IN_MEMORY + 1) * group * size
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == before


def test_what_is_not_there_is_bad_and_what_is_broken_is_the_users(tmp_path: Path, picture: Picture) -> None:
    write(tmp_path / "t.parquet", [picture(), None], 1)
    pq.write_table(pa.table({"image": ["a.jpg"], "caption": ["no picture"]}), tmp_path / "bare.parquet")
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "t.parquet").read_bytes()[:-20])
    with ImageSource(tmp_path) as source:
        assert source.files() == ["bare.parquet", "t.parquet", "torn.parquet"]
        with pytest.raises(BadImage, match=r"^no such file$"):
            source.read("gone.parquet/000000")
        with pytest.raises(BadImage, match="no row 2 in a table of 2"):
            source.read("t.parquet/000002")
        with pytest.raises(BadImage, match="names a picture and does not hold it"):
            source.read("t.parquet/000001")
        with pytest.raises(UserError, match="has no pictures"):
            source.read("bare.parquet/000000")
        with pytest.raises(UserError, match="not a whole Parquet file"):
            source.read("torn.parquet/000000")


def test_a_damaged_row_group_is_the_users(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", [bytes(range(256)) * 40] * 4, 2)
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    with ImageSource(tmp_path) as source, pytest.raises(UserError, match="row group 0 of the Parquet file is damaged"):
        source.read("t.parquet/000001")
