"""The shelf: what is put there comes back whole, or not at all."""

import os
from pathlib import Path

import pytest

from vitcapr.errors import UserError
from vitcapr.result_cache import ENTRY, ResultCache, key_of, result_cache_of

RUN = {"user": "ada", "host": "engine", "started": "2026-01-01T00:00:00+00:00", "seconds": 60.0}


@pytest.fixture
def shelf(tmp_path: Path) -> ResultCache:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights").write_bytes(b"weights")
    (tmp_path / "captions").write_bytes(b"captions")
    shelf = ResultCache(tmp_path / "shelf")
    shelf.store("k", {"folder/weights": tmp_path / "model/weights", "output": tmp_path / "captions"}, RUN)
    return shelf


def test_what_was_put_comes_back_and_looks_new(shelf: ResultCache, tmp_path: Path) -> None:
    os.utime(tmp_path / "captions", (1, 1))
    entry = shelf.find("k")
    assert entry is not None
    assert entry.run == RUN
    entry.restore({"folder": tmp_path / "again", "output": tmp_path / "there/captions"})
    assert (tmp_path / "again/weights").read_bytes() == b"weights"
    assert (tmp_path / "there/captions").read_bytes() == b"captions"
    assert (tmp_path / "there/captions").stat().st_mtime > 1
    assert shelf.find("other") is None


def test_a_result_that_another_experiment_has_keeps_its_time(shelf: ResultCache, tmp_path: Path) -> None:
    os.utime(tmp_path / "captions", (1, 1))
    entry = shelf.find("k")
    assert entry is not None
    entry.restore({"folder": tmp_path / "again", "output": tmp_path / "there/captions"})
    assert (tmp_path / "captions").stat().st_mtime == 1


def test_what_is_in_use_takes_no_room_and_what_is_not_is_linked(shelf: ResultCache, tmp_path: Path) -> None:
    (entry,) = shelf.entries()
    assert (entry.size, entry.shared) == (15, 15)
    (tmp_path / "model/weights").unlink()
    (entry,) = shelf.entries()
    assert (entry.size, entry.shared) == (15, 8)
    entry.restore({"folder": tmp_path / "again", "output": tmp_path / "captions"})
    assert (tmp_path / "again/weights").samefile(entry.path / "folder/weights")


def test_a_damaged_entry_is_not_given_and_is_replaced(shelf: ResultCache, tmp_path: Path) -> None:
    (shelf.root / "k/folder/weights").unlink()
    (shelf.root / "k/folder/weights").write_bytes(b"wiehgts")
    assert shelf.find("k") is None
    shelf.store("k", {"folder/weights": tmp_path / "model/weights"}, RUN)
    found = shelf.find("k")
    assert found is not None
    assert list(found.files) == ["folder/weights"]


def test_a_foreign_entry_is_a_users_error(shelf: ResultCache) -> None:
    (shelf.root / "k" / ENTRY).write_text("{}")
    with pytest.raises(UserError, match="not an entry of the shelf"):
        shelf.entries()


def test_equal_things_have_equal_keys() -> None:
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1}) != key_of({"a": 1, "b": [3]})


def test_the_shelf_can_be_elsewhere_or_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VITCAPR_RESULT_CACHE", raising=False)
    assert result_cache_of(Path("results")) == ResultCache(Path("results/result_cache"))
    monkeypatch.setenv("VITCAPR_RESULT_CACHE", "/group/shelf")
    assert result_cache_of(Path("results")) == ResultCache(Path("/group/shelf"))
    monkeypatch.setenv("VITCAPR_RESULT_CACHE", "off")
    assert result_cache_of(Path("results")) is None
