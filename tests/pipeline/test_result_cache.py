"""The result cache: what is stored there is restored whole, or not at all."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest

from vitcapr.errors import UserError
from vitcapr.pipeline.result_cache import ENTRY, ResultCache

RUN = {"user": "ada", "host": "engine", "started": "2026-01-01T00:00:00+00:00", "seconds": 60.0}


@pytest.fixture
def cache(tmp_path: Path) -> ResultCache:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights").write_bytes(b"weights")
    (tmp_path / "captions").write_bytes(b"captions")
    cache = ResultCache(tmp_path / "cache")
    cache.store("k", {"folder/weights": tmp_path / "model/weights", "output": tmp_path / "captions"}, RUN)
    return cache


def test_stored_results_are_restored_with_new_time_stamps(cache: ResultCache, tmp_path: Path) -> None:
    os.utime(tmp_path / "captions", (1, 1))
    entry = cache.find("k")
    assert entry.run == RUN
    entry.restore({"folder/weights": tmp_path / "again/weights", "output": tmp_path / "there/captions"})
    assert (tmp_path / "again/weights").read_bytes() == b"weights"
    assert (tmp_path / "there/captions").read_bytes() == b"captions"
    assert (tmp_path / "there/captions").stat().st_mtime > 1
    assert (tmp_path / "captions").stat().st_mtime == 1, "another experiment has it"
    assert cache.find("other") is None


def test_what_is_in_use_takes_no_room_and_what_is_not_is_linked(cache: ResultCache, tmp_path: Path) -> None:
    (entry,) = cache.entries()
    assert entry.freed == 0
    (tmp_path / "model/weights").unlink()
    (entry,) = cache.entries()
    assert entry.freed == len("weights")
    entry.restore({"folder/weights": tmp_path / "again/weights", "output": tmp_path / "captions"})
    assert (tmp_path / "again/weights").samefile(entry.path / "folder/weights")


def test_a_damaged_entry_is_not_given_and_is_replaced(cache: ResultCache, tmp_path: Path) -> None:
    (cache.root / "k/folder/weights").unlink()
    (cache.root / "k/folder/weights").write_bytes(b"wiehgts")
    assert cache.find("k") is None
    cache.store("k", {"folder/weights": tmp_path / "model/weights"}, RUN)
    found = cache.find("k")
    assert list(found.files) == ["folder/weights"]


def test_a_foreign_entry_is_a_users_error(cache: ResultCache) -> None:
    (cache.root / "k" / ENTRY).write_text("{}")
    with pytest.raises(UserError, match="not an entry of the result cache"):
        cache.entries()


def test_an_entry_writes_nowhere_else(cache: ResultCache, tmp_path: Path) -> None:
    entry = json.loads((cache.root / "k" / ENTRY).read_text())
    entry["files"]["output/../../evil"] = sha256(b"captions").hexdigest()
    (cache.root / "k" / ENTRY).write_text(json.dumps(entry))
    (tmp_path / "evil").write_bytes(b"captions")
    (found,) = cache.entries()
    with pytest.raises(UserError, match="the stage does not write"):
        found.restore({"folder/weights": tmp_path / "again", "output": tmp_path / "there"})


def test_a_result_that_cannot_be_stored_leaves_nothing(cache: ResultCache, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        cache.store("other", {"first": tmp_path / "captions", "second": tmp_path / "absent"}, RUN)
    assert [path.name for path in cache.root.iterdir()] == ["k"]
