"""Everything that a tar holds is read or listed as left out, with the place."""

import io
import tarfile
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from vitcapr.data import archive
from vitcapr.data.archive import TarFiles, list_tar
from vitcapr.errors import UserError

MEMBER = 1536
"""A header and two blocks of content."""


def packed(*names: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for number, name in enumerate(names):
            member = tarfile.TarInfo(name)
            member.size = 700
            tar.addfile(member, io.BytesIO(bytes([number + 1]) * 700))
    return stream.getvalue()


NAMES = [f"{number}.jpg" for number in range(8)]
WHOLE = packed(*NAMES)
HUGE = b"\x80" + b"\0" * 2 + b"\x40" + b"\0" * 8


@pytest.mark.parametrize(
    ("content", "names", "left_out"),
    [
        (WHOLE, NAMES, []),
        (packed("./a.jpg", "./.hidden", "b/./c.jpg"), ["a.jpg", "b/c.jpg"], []),
        (packed("a.jpg", "b" * 150, "é.jpg", "c.jpg"), ["a.jpg", "b" * 150, "é.jpg", "c.jpg"], []),
        (WHOLE[: 3 * MEMBER + 200], NAMES[:3], [("t.tar byte 4608", "damaged: no header of a tar")]),
        (WHOLE[: 3 * MEMBER + 600], NAMES[:3], [("t.tar 3.jpg", "the tar ends inside this file")]),
        (WHOLE[: 3 * MEMBER], NAMES[:3], [("t.tar byte 4608", "the tar has no end mark: it may have been cut here")]),
        (
            WHOLE[: 2 * MEMBER] + b"x" * 512 + WHOLE[2 * MEMBER + 512 :],
            NAMES[:2] + NAMES[3:],
            [("t.tar byte 3072", "damaged: no header of a tar")],
        ),
        (
            WHOLE[: 2 * MEMBER + 124] + HUGE + WHOLE[2 * MEMBER + 136 :],
            NAMES[:2] + NAMES[3:],
            [("t.tar byte 3072", "damaged: no header of a tar")],
        ),
        (WHOLE[: 2 * MEMBER] + bytes(1024) + WHOLE[2 * MEMBER :], NAMES, []),
        (packed(*NAMES[:4]) + packed(*NAMES[4:]), NAMES, []),
        (packed("a.jpg") + packed("a.jpg"), ["a.jpg"], [("t.tar a.jpg", "a second file of this name")]),
        (bytes(10240), [], []),
        (b"", [], []),
    ],
)
def test_nothing_vanishes_from_a_tar(
    tmp_path: Path, content: bytes, names: list[str], left_out: list[tuple[str, str]]
) -> None:
    (tmp_path / "t.tar").write_bytes(content)
    places, rejected = list_tar(tmp_path / "t.tar", "t.tar")
    assert (list(places), rejected) == (names, left_out)


def test_a_sparse_file_is_left_out(tmp_path: Path) -> None:
    header = tarfile.TarInfo("hole.txt")
    header.type, header.size = tarfile.GNUTYPE_SPARSE, 512
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    block[386:410] = b"00000000000\x0000000001000\x00"
    block[483:495] = b"00000002000\x00"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    (tmp_path / "t.tar").write_bytes(bytes(block) + b"a" * 512 + bytes(1024))
    assert list_tar(tmp_path / "t.tar", "t.tar") == ({}, [("t.tar hole.txt", "a sparse file")])


@pytest.mark.parametrize("content", [b"words " * 1000, b"\x1f\x8b" + b"z" * 2000])
def test_what_is_no_tar_is_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.tar").write_bytes(content)
    with pytest.raises(UserError, match=r"not an uncompressed tar .*uncompress it"):
        TarFiles(tmp_path).read("t.tar", "a.jpg")


def test_more_tars_than_a_process_may_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "INDEXES", 3)
    for number in range(20):
        (tmp_path / f"{number}.tar").write_bytes(packed(f"{number}.jpg"))
    files = TarFiles(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with ThreadPoolExecutor(40) as pool:
        read = pool.map(lambda number: files.read(f"{number}.tar", f"{number}.jpg"), [*range(20), *range(20)])
        assert list(read) == [b"\1" * 700] * 40
    assert files._list.cache_info().currsize == 3
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with pytest.raises(FileNotFoundError):
        files.read("7.tar", "8.jpg")


def test_a_long_gap_is_not_read_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.tar").write_bytes(packed("a.jpg"))
    with (tmp_path / "t.tar").open("ab") as tar:
        tar.truncate(2**25)
        tar.write(b"x")
    tracemalloc.start()
    places, rejected = list_tar(tmp_path / "t.tar", "t.tar")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (list(places), rejected) == (["a.jpg"], [(f"t.tar byte {MEMBER}", "damaged: no header of a tar")])
    assert peak < 2**23
