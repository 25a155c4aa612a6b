"""Files are whole or absent."""

import errno
from pathlib import Path

import pytest
from safetensors import SafetensorError

from vitcapr.errors import UserError
from vitcapr.files import (
    atomic_path,
    canonical_json,
    open_text,
    read_json,
    read_text,
    remove_remains,
    write_json,
    write_text,
)


def test_a_failure_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [child.name for child in path.parent.iterdir()] == ["file.txt"]


def test_only_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    kept = ("a.txt", ".a.txt.bak", ".b.txt.0123abcd.partial", "a.txt.partial")
    for name in (*kept, ".a.txt.0123abcd.partial", ".a.txt.ffff0000.partial"):
        (tmp_path / name).touch()
    remove_remains(tmp_path / "a.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(UserError, match="no space left on the disk"), atomic_path(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert not path.exists()
    with pytest.raises(UserError, match="no space left on the disk"), atomic_path(path):
        raise SafetensorError("I/O error: No space left on device (os error 28)")


def test_json_is_deterministic(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": ["猫"]})
    write_json(tmp_path / "b.json", {"a": ["猫"], "b": 1})
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert read_json(tmp_path / "a.json") == {"a": ["猫"], "b": 1}
    assert canonical_json({"b": 1, "a": [2]}) == '{"a":[2],"b":1}'


def test_unreadable_json_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_json(tmp_path / "none.json")
    write_text(tmp_path / "bad.json", "{")
    with pytest.raises(UserError, match=r"not a JSON file: .*; correct it, or compare its size with the original's"):
        read_json(tmp_path / "bad.json")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_text_of_every_editor_is_read(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes('{"a": "猫",\r\n "score": NaN, "b": -Infinity}'.encode(encoding))
    assert read_json(path) == {"a": "猫", "score": None, "b": None}
    assert read_text(path).startswith('{"a"')
    with open_text(path) as stream:
        assert stream.readline() == '{"a": "猫",\r\n'
