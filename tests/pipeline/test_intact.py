"""A file that has changed since its job wrote it is refused, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.pipeline.records import FORMAT, check_as_written

RESULTS = Path("results")
FILE = RESULTS / "a/captions/captions.json"


@pytest.fixture(autouse=True)
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file and the record of the job that wrote it."""
    monkeypatch.chdir(tmp_path)
    FILE.parent.mkdir(parents=True)
    FILE.write_text("as written")
    record("decode/beam", "2026-01-02")


def record(name: str, started: str, path: Path = FILE, experiment: str = "a", **facts: Any) -> Path:
    """The record of a job that wrote ``path`` as it is now."""
    target = RESULTS / experiment / "runs" / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    whole = {
        "format": FORMAT,
        "stage": "decode",
        "command": "vitcapr stage decode",
        "code": {},
        "settings": {},
        "values": {},
        "inputs": {},
        "outputs": {path.as_posix(): {"option": "captions", "sha256": sha256_file(path), "size": path.stat().st_size}},
        "made": {
            **dict.fromkeys(("user", "host", "platform", "python"), "x"),
            "started": started,
            "seconds": 1.0,
            "cpu_seconds": 1.0,
            "peak_memory_mb": 1,
            "energy": {"joules": {}, "absent": {}},
            "libraries": {},
        },
        "result_cache": None,
    }
    target.write_text(json.dumps({**whole, **facts}))
    return target


def check(path: Path = FILE) -> None:
    check_as_written({path.as_posix(): {"sha256": sha256_file(path)}})


def test_a_file_as_it_was_written_passes() -> None:
    check()


def test_a_changed_file_is_refused_with_two_ways_out() -> None:
    FILE.write_text("by hand")
    with pytest.raises(UserError, match="the file is not as decode/beam wrote it") as caught:
        check()
    assert str(caught.value.where) == FILE.as_posix()
    assert caught.value.remedy == (
        f"snakemake --forcerun {FILE} makes it again; to keep your change, delete results/a/runs/decode/beam.json"
    )


def test_a_file_whose_record_was_deleted_passes() -> None:
    FILE.write_text("by hand")
    (RESULTS / "a/runs/decode/beam.json").unlink()
    check()


@pytest.mark.parametrize("started", ["2026-01-01", "2026-01-03"])
def test_the_newest_record_counts(started: str) -> None:
    """The rule of the job has changed its name, and the record of the old one is still there."""
    first = FILE.read_text()
    FILE.write_text("by another rule")
    record("describe/beam", started)
    FILE.write_text(first if started < "2026-01-02" else "by another rule")
    check()
    FILE.write_text("by another rule" if started < "2026-01-02" else first)
    with pytest.raises(UserError, match="not as"):
        check()


def test_a_restored_result_is_as_old_as_its_restoration() -> None:
    FILE.write_text("restored")
    record("describe/beam", "2025-01-01", result_cache={"key": "x", "restored": "2026-01-03"})
    check()


def test_records_of_other_paths_and_other_formats_say_nothing() -> None:
    """Those of a copied experiment name the files of the first one."""
    copy = RESULTS / "b/captions/captions.json"
    copy.parent.mkdir(parents=True)
    copy.write_text("another")
    record("decode/beam", "2026-01-02", experiment="b")
    check(copy)
    (RESULTS / "a/runs/decode/old.json").write_text('{"format": "vitcapr-run-1"}')
    (RESULTS / "a/runs/decode/cut.json").write_text('{"format"')
    check()


def test_an_input_of_another_experiment_is_checked_by_its_own_records() -> None:
    other = RESULTS / "b/captions/captions.json"
    other.parent.mkdir(parents=True)
    other.write_text("as written")
    record("decode/beam", "2026-01-02", other, experiment="b")
    check(other)
    other.write_text("by hand")
    with pytest.raises(UserError, match=r"results/b/runs/decode/beam\.json"):
        check(other)


def test_a_file_outside_the_results_passes(tmp_path: Path) -> None:
    (tmp_path / "photos.zip").write_text("a user's own")
    check(Path("photos.zip"))
