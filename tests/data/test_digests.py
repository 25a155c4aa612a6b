import json
import os
from pathlib import Path

import pytest

from vitcapr.data import digests
from vitcapr.data.digests import content_digest
from vitcapr.errors import UserError


@pytest.fixture(autouse=True)
def at_rest(monkeypatch):
    """Files of these tests count as settled the moment they are written."""
    monkeypatch.setattr(digests, "AT_REST_NS", -60_000_000_000)


@pytest.fixture
def folder(tmp_path, write_files):
    return write_files(tmp_path / "data", {"a.jpg": "one", "sub/b.jpg": "two", "sub/.DS_Store": "junk"})


@pytest.fixture
def hashed(monkeypatch):
    """The names of the files that were really read."""
    names: list[str] = []

    def spy(path: Path) -> str:
        names.append(path.name)
        return real(path)

    real = digests.sha256_file
    monkeypatch.setattr(digests, "sha256_file", spy)
    return names


def test_an_edit_is_seen_though_size_and_modification_time_stay_and_touching_is_none(tmp_path, folder):
    """`cp -p` and `rsync -t` put back old times; the change time tells."""
    cache = tmp_path / "digests.json"
    first = content_digest(folder, cache)
    os.utime(folder / "a.jpg", (1, 1))
    assert content_digest(folder, cache) == first
    status = (folder / "a.jpg").stat()
    while (folder / "a.jpg").stat().st_ctime_ns == status.st_ctime_ns:  # the clock of the file system ticks coarsely
        (folder / "a.jpg").write_text("eno")
        os.utime(folder / "a.jpg", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert content_digest(folder, cache) != first


def test_names_and_contents_count_and_places_and_hidden_files_do_not(tmp_path, folder):
    cache = tmp_path / "digests.json"
    first = content_digest(folder, cache)
    (folder / ".hidden").write_text("x")
    assert content_digest(folder, cache) == first
    (folder / "c.jpg").write_text("")
    assert content_digest(folder, cache) != first
    (folder / "c.jpg").unlink()
    assert content_digest(folder, cache) == first
    (folder / "a.jpg").write_text("two")
    (folder / "sub" / "b.jpg").write_text("one")
    os.utime(folder / "a.jpg", (2, 2))
    os.utime(folder / "sub" / "b.jpg", (2, 2))
    swapped = content_digest(folder, cache)
    assert swapped != first
    moved = folder.rename(tmp_path / "moved")
    assert content_digest(moved, cache) == swapped
    (moved / "a.jpg").rename(moved / "c.jpg")
    assert content_digest(moved, cache) != swapped


def test_several_sources_share_a_cache_and_do_not_run_together(tmp_path, folder, hashed):
    cache = tmp_path / "digests.json"
    a, b = folder / "a.jpg", folder / "sub" / "b.jpg"
    both = content_digest([a, b], cache)
    assert content_digest([b, a], cache) != both
    assert content_digest([a], cache) == content_digest(a, cache) != both
    content_digest(folder, cache)
    content_digest([a, b], cache)
    assert sorted(hashed) == ["a.jpg", "a.jpg", "b.jpg", "b.jpg"]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"format": "other"}', '{"format": "vitcapr-digests-1", "folders": {"/x": {"a": [1]}}}'],
)
def test_a_broken_cache_costs_time_only(tmp_path, folder, hashed, content):
    cache = tmp_path / "digests.json"
    first = content_digest(folder, cache)
    cache.write_text(content)
    assert content_digest(folder, cache) == first
    assert len(hashed) == 4
    assert json.loads(cache.read_text())["format"] == "vitcapr-digests-1"


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path, folder):
    (tmp_path / "file").write_text("")
    assert content_digest(folder, tmp_path / "file" / "digests.json") == content_digest(folder, tmp_path / "ok.json")


def test_a_file_still_warm_is_not_remembered(tmp_path, folder, hashed, monkeypatch):
    cache, ahead = tmp_path / "digests.json", tmp_path / "ahead.json"
    os.utime(folder / "a.jpg", (4e9, 4e9))  # By a clock that is ahead.
    assert content_digest(folder, ahead) == content_digest(folder, ahead)
    assert sorted(hashed) == ["a.jpg", "a.jpg", "b.jpg"]
    monkeypatch.setattr(digests, "AT_REST_NS", 3600 * 10**9)
    assert content_digest(folder, cache) == content_digest(folder, cache)
    assert len(hashed) == 3 + 4


def test_a_missing_source_names_its_key(tmp_path):
    with pytest.raises(UserError, match=r"data\.flickr8k\.images: No such file or directory .*gone"):
        content_digest(tmp_path / "gone", tmp_path / "digests.json", key="data.flickr8k.images")


def test_a_long_first_time_is_announced_once(tmp_path, folder, capsys, monkeypatch):
    monkeypatch.setattr(digests, "ANNOUNCED_BYTES", 6)
    content_digest(folder, tmp_path / "digests.json")
    assert capsys.readouterr().err.count("\n") == 1
    content_digest(folder, tmp_path / "digests.json")
    assert capsys.readouterr().err == ""


def test_a_name_that_is_not_utf8_is_a_name(tmp_path, folder, hashed):
    os.link(folder / "a.jpg", os.fsencode(folder) + b"/\xff.jpg")
    cache = tmp_path / "digests.json"
    assert content_digest(folder, cache) == content_digest(folder, cache)
    assert len(hashed) == 3


@pytest.mark.timeout(20)
def test_what_is_no_file_counts_by_its_name_and_is_not_opened(tmp_path, folder):
    before = content_digest(folder, tmp_path / "digests.json")
    os.mkfifo(folder / "pipe.jpg")
    (folder / "loop.jpg").symlink_to("loop.jpg")
    (folder / "zeros.jpg").symlink_to("/dev/zero")
    assert content_digest(folder, tmp_path / "digests.json") != before
    with pytest.raises(UserError, match="neither a file nor a folder"):
        content_digest(folder / "pipe.jpg", tmp_path / "digests.json")
