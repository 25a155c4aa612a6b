import os
import zipfile

import pytest

from vitcapr.data.archive import Archive, DamagedMember
from vitcapr.errors import UserError

FILES = {"b.txt": "b", "sub/a.txt": "a", "sub/deep/c.txt": "c"}


def test_a_folder_and_its_zip_are_alike(tmp_path, write_files, write_zip):
    folder = write_files(tmp_path / "data", {**FILES, ".DS_Store": "x", "__MACOSX/sub/._a.txt": "x"})
    for root in (folder, write_zip(tmp_path / "data.zip", FILES)):
        with Archive(root) as archive:
            assert archive.files() == ["b.txt", "sub/a.txt", "sub/deep/c.txt"]
            assert archive.read("sub/deep/c.txt") == b"c"
            with pytest.raises(FileNotFoundError):
                archive.read("sub/b.txt")


def test_a_folder_is_read_under_all_its_names(tmp_path, write_files):
    folder = write_files(tmp_path / "data", {"a.txt": "a"})
    elsewhere = write_files(tmp_path / "elsewhere", {"b.txt": "b"})
    (folder / "linked").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(folder)
    (folder / "again").symlink_to("linked")
    with Archive(folder) as archive:
        assert archive.files() == ["a.txt", "again/b.txt", "linked/b.txt"]
    for number in range(64):
        (folder / f"l{number}").symlink_to(elsewhere)
    with pytest.raises(UserError, match="links give one folder more than 64 names"), Archive(folder) as archive:
        archive.files()


def test_no_folder_and_no_zip(tmp_path):
    with pytest.raises(UserError, match="no such folder or zip"):
        Archive(tmp_path / "gone")
    (tmp_path / "torn.zip").write_bytes(b"PK\x03\x04 half a download")
    with pytest.raises(UserError, match="neither a folder nor a whole zip"):
        Archive(tmp_path / "torn.zip")


def test_a_damaged_member_leaves_the_others_readable(tmp_path):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bad.txt", b"0123456789")
        archive.writestr("good.txt", b"good")
    path.write_bytes(path.read_bytes().replace(b"0123456789", b"0123456780"))
    with Archive(path) as archive:
        with pytest.raises(DamagedMember, match=r"Bad CRC-32 for file 'bad.txt'"):
            archive.read("bad.txt")
        assert archive.read("good.txt") == b"good"


@pytest.mark.timeout(20)
def test_what_is_no_file_is_not_read(tmp_path, write_files):
    folder = write_files(tmp_path / "data", {"a.txt": "a"})
    os.mkfifo(folder / "pipe.jpg")
    (folder / "loop.jpg").symlink_to("loop.jpg")
    (folder / "zeros.jpg").symlink_to("/dev/zero")
    with Archive(folder) as archive:
        assert archive.files() == ["a.txt", "loop.jpg", "pipe.jpg", "zeros.jpg"]
        for name in ("loop.jpg", "pipe.jpg", "zeros.jpg"):
            with pytest.raises(OSError, match=r"not a regular file|Too many levels"):
                archive.read(name)
